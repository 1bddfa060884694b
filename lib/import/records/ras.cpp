// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/json.hpp"
#include "documents/named_ranks.hpp"
#include "import/records/job.hpp"
#include "import/records/readers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace reckon::import_detail {
namespace {

class RasReader {
public:
  void read(const JsonView& dump) {
    m_job.note("NCCL", dump.at("nccl_version").string());
    for (const JsonView& communicator : dump.at("communicators").elements()) {
      const std::string hash = communicator.at("hash").string();
      const std::size_t index = m_job.communicator(
          hash + " " + communicator.at("secondary_hash").string(),
          {.name = fmt::format("communicator {}", hash), .ranks = communicator.at("size").count()});
      for (const JsonView& rank : communicator.at("ranks").elements()) {
        add_rank(dump.file(), index, rank);
      }
      for (const JsonView& rank : communicator.at("missing_ranks").elements()) {
        const JsonView status = rank.at("status");
        m_missing.push_back(fmt::format("rank {} of {} on {} (pid {}){}", rank.at("rank").count(),
                                        hash, rank.at("host").string(),
                                        rank.at("pid").integer(-1, 1 << 30),
                                        status.at("considered_dead").boolean() ? ": dead"
                                        : status.at("unresponsive").boolean()  ? ": does not answer"
                                                                               : ": is missing"));
      }
    }
  }

  [[nodiscard]] Profile profile(const std::vector<ToolOutput>& files,
                                const ImportOptions& options) {
    m_job.note(k_missing_ranks, fmt::format("{}", fmt::join(m_missing, "; ")));
    m_job.note("times", "none: ncclras counts collectives; NCCL's Inspector measures them");
    return m_job.profile(files, options);
  }

private:
  void add_rank(const std::string& file, std::size_t communicator, const JsonView& rank) {
    const std::string host = rank.at("host").string();
    const std::string id = fmt::format("{} {}", host, rank.at("pid").integer(-1, 1 << 30));
    if (m_processes.insert(id).second) {
      static_cast<void>(m_job.process({.file = file, .host = host}));
    }
    const std::uint64_t number = rank.at("rank").count();
    for (const auto& [name, calls] : rank.at("collective_counts").members()) {
      if (recorded_collective(name) != nullptr) { // sends and receives need not be alike
        m_job.progress({communicator, number, name, calls.count()});
      }
    }
  }

  Job m_job{"ncclras"};
  std::set<std::string> m_processes;
  std::vector<std::string> m_missing;
};

} // namespace

Profile read_ras(const std::vector<ToolOutput>& files, const ImportOptions& options) {
  if (files.size() > 1) {
    fail(ErrorKind::input,
         fmt::format("{}: one output of ncclras has all ranks of a job at one moment; import it "
                     "by itself and compare two with reckon diff",
                     files[1].file));
  }
  RasReader reader;
  const Json dump = parse_json(files.front().text, files.front().file);
  reader.read(JsonView(dump, files.front().file));
  return reader.profile(files, options);
}

} // namespace reckon::import_detail
