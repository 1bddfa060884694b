// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"
#include "documents/report.hpp"

#include <string>

namespace reckon {

// Pictures by gnuplot, which runs as a child without a shell and without the user's settings. No
// text of a document, and no name of a file, reaches it otherwise than through
// quoted_for_gnuplot(); numbers go as data; the picture comes back through a pipe. The format
// follows from the ending of `path`, .svg or .png; the file appears whole or not at all.
//
// All throw Error{unavailable} when this build has no plotting or gnuplot is not installed,
// Error{usage} for another ending or when there is nothing to draw, Error{operation} with gnuplot's
// words when it fails.

/// Bandwidth over size of every curve (three sizes or more) of the case, medians with the range to
/// the slow tail, and the fit as a thin line. `test` empty: the case with the most points. For
/// contention the slow-down over size, a panel for each communication.
void plot_curves(const Profile& profile, const std::string& test, const std::string& path);
/// Every matrix of the case as a heat map. `test` empty: that of a cluster's pairs of machines,
/// else the first case that has one.
void plot_matrix(const Profile& profile, const std::string& test, const std::string& path);
/// Bars of predicted beside measured time for each stage, with the bound and the prediction's
/// range.
void plot_report(const Report& report, const std::string& path);

/// A gnuplot string constant that shows `text` and has no other effect: in single quotes, in which
/// gnuplot knows no escapes, no backquotes and no macros; single quotes and backquotes become
/// typographic ones, control characters '?', and text beyond 160 characters is cut.
[[nodiscard]] std::string quoted_for_gnuplot(std::string_view text);
/// The same for the label of an axis mark, where '%' begins a number format.
[[nodiscard]] std::string tic_for_gnuplot(std::string_view text);

} // namespace reckon
