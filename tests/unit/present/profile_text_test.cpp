// SPDX-License-Identifier: Apache-2.0
#include "present/document_text.hpp"
#include "support/example_documents.hpp"
#include "support/machine_documents.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace reckon {
namespace {

using namespace testing;

TEST(ProfileText, ThinsCurvesOutInTheOverviewAndShowsACaseInFull) {
  const Profile p = test::machine_profile();
  EXPECT_THAT(render(p, Style{}), Not(HasSubstr("#bytes")));
  const std::string full = render(p, {}, {.test = "fabric_write", .samples = false});
  EXPECT_THAT(full, HasSubstr("#bytes   n"));
  EXPECT_THAT(full, HasSubstr("\n268435456  12"));
  EXPECT_THAT(full, Not(HasSubstr("reduce_sum")));
  EXPECT_EQ(static_cast<std::size_t>(std::count(full.begin(), full.end(), '#')),
            8U); // 4 curves, 2 lines each
}

TEST(ProfileText, ShowsWritesBetweenPairsAsARowForEachPair) {
  Profile p;
  p.name = "three";
  for (const auto& [from, to] : {std::pair{"w0", "w10"}, {"w0", "w2"}}) {
    for (const std::uint64_t bytes : {4096U, 65536U, 1048576U}) {
      Cell cell;
      cell.key.test = "pair_write";
      cell.key.from = from;
      cell.key.to = to;
      cell.key.bytes = bytes;
      cell.unit = "seconds";
      // 1 ms and 100 MB/s: 1048576 - 65536 bytes in 9.8304 ms.
      cell.samples = {1e-3 + static_cast<double>(bytes) / 1e8};
      summarize_cell(cell);
      if (cell.key.to == "w2" && bytes == 1048576) {
        const CellKey key = cell.key;
        cell = Cell();
        cell.key = key;
        cell.status = CellStatus::skipped;
        cell.reason = "no time";
        cell.unit = "seconds";
      }
      p.cells.push_back(cell);
    }
  }
  const std::string text = render(p, Style{});
  EXPECT_THAT(text, test::Says("100.00 MB/s"));
  EXPECT_THAT(text, Not(HasSubstr("row = source")));
  EXPECT_THAT(text, HasSubstr("no time"));
  EXPECT_THAT(render(p, {}, {.test = "pair_write", .samples = false}), HasSubstr("#bytes"));
}

TEST(ProfileText, ShowsEachValueOfASettingWithItsPlaces) {
  Profile p;
  const std::string net = "/sys/class/net/";
  p.settings = {
      {"m0", "", "mtu", "9000", net + "bond0/mtu"},
      {"m0", "w1", "mtu", "1500", net + "bond0/mtu"},
      {"m0", "", "kernel", "6.8.0", "/proc/sys/kernel/osrelease"},
      {"m0/gpu0", "", "iommu", "identity", "type"},
      {"m0/gpu1", "", "iommu", "identity", "type"},
      {"m0/nic0", "", "mtu", "4200", net + "eth0/mtu"},
      {"m0/nic0", "", "rx_errors_while_measured", "7", net + "eth0/statistics/rx_errors"}};
  const std::string text = render(p, Style{});
  EXPECT_THAT(text.substr(text.find("settings")),
              StrEq("settings\n"
                    "  setting                   value     places\n"
                    "  iommu                     identity  m0/gpu0-1\n"
                    "  mtu                       4200      m0/nic0\n"
                    "  mtu of bond0              1500      m0 of w1\n"
                    "  mtu of bond0              9000      m0\n"
                    "  rx_errors_while_measured  7         m0/nic0\n"));
  p.settings = {{"m0", "", "kernel", "6.8.0", "/proc/sys/kernel/osrelease"}};
  EXPECT_THAT(render(p, Style{}), Not(HasSubstr("settings")));
}

TEST(ProfileText, HasAHeadOverValuesOfNoNumberOfThreads) {
  Profile p;
  p.name = "threads";
  for (const int threads : {0, 2}) {
    Cell& cell = p.cells.emplace_back();
    cell.key.test = "fabric_aggregate";
    cell.key.threads = threads;
    cell.unit = "bytes_per_second";
    cell.samples = {1e9};
    summarize_cell(cell);
  }
  EXPECT_THAT(render(p, Style{}), HasSubstr("\nGB/s  2 threads\n"));
}

TEST(ProfileText, GivesTheReasonOfEveryCellWithoutAValue) {
  const std::string text = render(test::machine_profile(), Style{});
  EXPECT_THAT(text, test::Says("fabric_write"));
  EXPECT_THAT(text, test::Says("of 30"));
  EXPECT_THAT(text, HasSubstr("~24.80")); // noisy
}

TEST(ProfileText, MergesReasonsThatDifferInNumbersOnly) {
  Profile p = test::machine_profile();
  int n = 0;
  for (Cell& c : p.cells) {
    if (c.key.test == "reduce_sum") {
      ++n;
      c.status = CellStatus::noisy;
      c.reason = "others used " + std::to_string(n) + ".5 of 2 processors; stopped after 7 samples";
    }
  }
  const std::string text = render(p, Style{});
  EXPECT_THAT(text, test::Says("reduce_sum"));
  EXPECT_THAT(text, test::Says("reduce_sum"));
}

TEST(ProfileText, ShowsLatenciesOverFootprintsAsTimes) {
  Profile p = test::machine_profile();
  p.fits.clear();
  p.topology.objects.clear();
  std::erase_if(p.cells, [](const Cell& c) {
    return c.key.test != "fabric_write" || c.key.direction != "one_way";
  });
  for (Cell& c : p.cells) {
    c.key.test = "memory_latency_chase";
  }
  const std::string text = render(p, Style{});
  EXPECT_THAT(text, Not(HasSubstr("GB/s")));
  EXPECT_THAT(text, HasSubstr(" 33.56 ms")); // shm at 256 MiB
  EXPECT_THAT(render(p, Style{}, {.test = "memory_latency_chase", .samples = false}),
              Not(HasSubstr("GB/s")));
}

TEST(ProfileText, CallsAFitWithoutGrowthFlat) {
  Profile p = test::machine_profile();
  p.fits.resize(1);
  p.fits[0].segments = {{8, 64, 1e-6, 1e15, 0.01}, {64, 1024, 1e-6, 1e9, 0.01}};
  const std::string text = render(p, Style{});
  EXPECT_THAT(text, HasSubstr("1.000 us  flat"));
  EXPECT_THAT(text, HasSubstr("1.000 us  1.00"));
}

TEST(ProfileText, NamesTheShareOfTheCeiling) {
  // 31e9 of 34e9 is 91.2 %, 9.1 of 10 is 91.0 %.
  EXPECT_THAT(render(test::machine_profile(), Style{}), test::Says("34 GB/s"));
}

TEST(ProfileText, PrintsRawSamplesInBaseUnits) {
  const std::string text =
      render(test::example_profile(), Style{}, {.test = "fabric_write", .samples = true});
  EXPECT_THAT(text, HasSubstr("2500000000 2250000000 2750000000"));
}

TEST(ProfileText, HoldsForAnEmptyProfile) {
  Profile p;
  p.name = "none";
  p.machines = {{.id = "m0", .name = "", .count = 1, .cores = 1, .memory_bytes = 0}};
  EXPECT_THAT(render(p, Style{}), HasSubstr("m0"));
}

TEST(ProfileText, SaysByHowMuchACellExceedsItsCeiling) {
  Profile p = test::machine_profile();
  for (Cell& c : p.cells) {
    if (c.ceiling && c.ceiling->name.starts_with("STREAM") && c.key.threads == 4) {
      c.p50 = c.max = 1.5 * c.ceiling->value; // 34 GB/s
    }
  }
  EXPECT_THAT(render(p, Style{}),
              HasSubstr("best cell: 51 GB/s, 1.50 times its ceiling, 34 GB/s (STREAM-like add, "));
}

TEST(ProfileText, DisarmsTextOfTheDocument) {
  Profile p = test::machine_profile();
  p.name = "\x1b[2Jname";
  p.source = "\x1b]0;source\x07";
  p.context["\x1bkey"] = "\x1bvalue";
  p.machines[0].name = "\x1b";
  for (TopologyObject& o : p.topology.objects) {
    o.name = "\x1bname";
  }
  for (Cell& c : p.cells) {
    c.reason = "\x1breason";
    c.key.transport += "\x1b";
    if (c.ceiling) {
      c.ceiling->name = "\x1b";
    }
  }
  for (const ShowOptions& options :
       {ShowOptions{}, ShowOptions{"fabric_write", true}, ShowOptions{"reduce_sum", true}}) {
    EXPECT_THAT(render(p, Style{}, options), Not(HasSubstr("\x1b")));
  }
}

TEST(PlanText, DisarmsTextOfTheDocument) {
  Plan p = test::machine_plan();
  p.strategy = p.transport = p.runner_up = p.margin_text = "\x1b";
  p.profile.name = p.workload.name = "\x1b";
  p.prediction.bound_by = p.prediction.relief = "\x1b";
  p.options["\x1b"] = "\x1b";
  p.candidates[0].strategy = p.candidates[4].strategy = p.candidates[4].reason = "\x1b";
  p.ranks[0].machine = "\x1b";
  p.quantities[0].name = p.quantities[0].equation = "\x1b";
  p.quantities[0].inputs["\x1b"] = 1;
  p.prediction.terms[0].name = "\x1b";
  EXPECT_THAT(render(p, Style{}), Not(HasSubstr("\x1b")));
}

TEST(PlanText, ListsWhatWasReadFromTheProfileApart) {
  Plan p = test::machine_plan();
  p.quantities.push_back({"profile", 0, "reduce_sum: 12 cells", {}});
  EXPECT_THAT(explain(p, Style{}), test::Says("reduce_sum: 12"));
}

TEST(PlanText, GivesInputsTheirUnits) {
  Plan p = test::machine_plan();
  p.quantities = {{"ring_seconds",
                   0.1,
                   "equation 1",
                   {{"n", 8}, {"M", 4194304}, {"B", 12.5e9}, {"B_server", 1e9}}}};
  EXPECT_THAT(explain(p, Style{}), test::Says("B_server"));
}

} // namespace
} // namespace reckon
