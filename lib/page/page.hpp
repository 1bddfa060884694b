// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/document.hpp"

#include <string>
#include <vector>

namespace reckon {

/// A document and the file or shipped name that it was read from; "-": standard input.
struct NamedDocument {
  std::string name;
  Document document;
};

/// A page about these documents, the verdict first:
/// - one of any kind: what it says;
/// - several, each of another kind: a profile, what was planned from it and what came of it. With
///   the profile at hand (given, shipped or beside the plan) the plan is played on it: what each
///   link carries, and what each lane does when;
/// - two of one kind: what differs by meaning, the first one before, the second one after.
/// `trace`: empty, or the file that `run --trace` wrote of the plan, shown beside its prediction.
/// No clock and no chance in it. Throws Error{usage} for any other set of documents and for a trace
/// without a plan, Error{input} as read_trace(); never for what a document says.
[[nodiscard]] std::string page_of(const std::vector<NamedDocument>& documents,
                                  const std::string& trace = {});

} // namespace reckon
