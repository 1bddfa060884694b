// SPDX-License-Identifier: Apache-2.0
#include "present/contention_text.hpp"

#include "core/file.hpp"
#include "present/document_text.hpp"
#include "present/groups.hpp"
#include "present/plot.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>

namespace reckon {
namespace {

using namespace testing;

/// A copy on one node, of 1, 10 and 100 MiB at 10 GB/s: alone, beside two products of matrices and
/// beside lookups that make it half as fast again; and a product that takes 3 ms alone.
Profile contended() {
  Profile p;
  p.name = "box";
  const auto add = [&p](const CellKey& key, double seconds) -> Cell& {
    Cell& c = p.cells.emplace_back();
    c.key = key;
    c.unit = "seconds";
    for (int i = 0; i < 9; ++i) {
      c.samples.push_back(seconds * (0.996 + 0.001 * i)); // median: seconds
    }
    summarize_cell(c);
    return c;
  };
  CellKey key{.test = k_contention_communication,
              .from = "m0/numa0",
              .to = "m0/numa0",
              .threads = 1,
              .direction = "one_way",
              .state = "cold"};
  for (const std::uint64_t mib : {1U, 10U, 100U}) {
    key.bytes = mib * k_mib;
    const double seconds = static_cast<double>(key.bytes) / 10e9;
    key.operation = "";
    add(key, seconds);
    key.operation = "gemm_1000";
    add(key, 1.2 * seconds);
    key.operation = "gemm_256";
    add(key, 1.0001 * seconds);
    key.operation = "embedding_1000";
    add(key, 1.5 * seconds).status = mib == 10 ? CellStatus::noisy : CellStatus::ok;
  }
  p.cells.back().status = CellStatus::failed;
  p.cells.back().reason = "out of memory";
  key = {};
  key.test = k_contention_compute;
  key.from = "m0/numa0";
  key.threads = 1;
  key.operation = "gemm_256";
  add(key, 0.003);
  key.to = "m0/numa0";
  key.bytes = k_mib;
  key.direction = "one_way";
  key.state = "cold";
  add(key, 0.0033);
  return p;
}

TEST(ContentionText, OneRowACommunicationOneColumnAComputation) {
  const Profile p = contended();
  EXPECT_EQ(contention_table(p, k_contention_communication, {}),
            "contention_communication: time of a communication alone, and how many times longer "
            "beside a computation\n"
            "communication              threads     size     alone  embedding_1000  gemm_256  "
            "gemm_1000\n"
            "copy m0/numa0 -> m0/numa0        1    1 MiB  104.9 us           1.50x   (1.00x)      "
            "1.20x\n"
            "copy m0/numa0 -> m0/numa0        1   10 MiB  1.049 ms          ~1.50x   (1.00x)      "
            "1.20x\n"
            "copy m0/numa0 -> m0/numa0        1  100 MiB  10.49 ms          failed   (1.00x)      "
            "1.20x\n"
            "( ) no difference shown: rank test, 5 %\n");
  EXPECT_EQ(contention_table(p, k_contention_compute, {}),
            "contention_compute: time of a computation alone, then how many times longer while "
            "gradients move\n"
            "communication              threads   size  gemm_256\n"
            "none                             1         3.000 ms\n"
            "copy m0/numa0 -> m0/numa0        1  1 MiB     1.10x\n");
}

TEST(ContentionText, ShowHasTheTableAndInFullTheTimesToo) {
  const Profile p = contended();
  const std::string all = render(p, Style{});
  EXPECT_THAT(all, HasSubstr("1.20x"));
  EXPECT_THAT(all, Not(HasSubstr("row = source"))); // one node to itself is no matrix
  ShowOptions options;
  options.test = k_contention_communication;
  const std::string full = render(p, Style{}, options);
  EXPECT_THAT(full, HasSubstr("1.20x"));
  EXPECT_THAT(full, HasSubstr("#bytes"));
}

#ifdef RECKON_HAVE_GNUPLOT
TEST(ContentionText, ThePictureHasACurveForEachComputation) {
  const Profile p = contended();
  const std::string path = std::filesystem::temp_directory_path() /
                           ("reckon-contention-" + std::to_string(getpid()) + ".svg");
  plot_curves(p, k_contention_communication, path);
  const std::string svg = read_file(path);
  std::remove(path.c_str());
  EXPECT_THAT(svg, HasSubstr("embedding"));
  EXPECT_THAT(svg, test::Says("times"));
}
#endif

} // namespace
} // namespace reckon
