// SPDX-License-Identifier: Apache-2.0
#include "run/emulation.hpp"

#include "core/clock.hpp"
#include "run/transports.hpp"

#include <fmt/format.h>

namespace reckon {

void emulate(RunOptions& options, const StationNetwork& network, int rank, PacingRecord* record) {
  static const MonotonicClock clock;
  options.mover = [network, rank, record, plain = options] {
    return make_paced_mover(mover_for(plain, static_cast<std::size_t>(rank)), rank, network, record,
                            clock);
  };
}

void mark_emulated(Report& report, const DocumentLink& profile, const PacingRecord& record) {
  report.emulation = {profile, record.writes, record.late, record.worst_late_s};
  constexpr double k_most_late = 0.5; // of the writes; that they are late does no harm by itself
  if (report.error > report.tolerance && report.profile.digest == profile.digest &&
      static_cast<double>(record.late) > k_most_late * static_cast<double>(record.writes)) {
    report.other_links =
        fmt::format("this machine is slower than the links of {} that it emulates", profile.name);
    report.cause = fmt::format("this machine ({:+.1f} %): {} of {} writes took longer here than on "
                               "the emulated links",
                               100 * report.error, record.late, record.writes);
    return;
  }
  if (!report.other_links.empty()) {
    report.cause =
        fmt::format("emulated ({:+.1f} %): links as {} has them; sums and processors are "
                    "this machine's",
                    100 * report.error, profile.name);
  }
  report.other_links.clear(); // they are emulated
}

} // namespace reckon
