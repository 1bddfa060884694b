// SPDX-License-Identifier: Apache-2.0
#include "probe/description.hpp"

#include "documents/cells.hpp"
#include "fakes.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

Cell cell(const char* test, double value, const char* from = "m0/numa0", std::uint64_t bytes = 0) {
  return test::cell_with({.test = test, .from = from, .bytes = bytes}, {value, value, value});
}

TEST(FitsOf, FitsTimesAndRatesAlike) {
  // T(s) = 2 us + s / 5 GB/s, once as times and once as rates.
  std::vector<Cell> cells;
  for (std::uint64_t bytes = 64; bytes <= (1U << 26U); bytes *= 4) {
    const double seconds = 2e-6 + static_cast<double>(bytes) / 5e9;
    cells.push_back(cell(k_host_memcpy, seconds, "m0", bytes));
    cells.push_back(cell(k_fabric_aggregate, static_cast<double>(bytes) / seconds, "m0", bytes));
  }
  const std::vector<Fit> fits = fits_of(cells);
  ASSERT_EQ(fits.size(), 2U);
  for (const Fit& fit : fits) {
    EXPECT_EQ(fit.key.bytes, 0U);
    ASSERT_EQ(fit.segments.size(), 1U);
    EXPECT_NEAR(fit.segments[0].alpha_seconds, 2e-6, 1e-9);
    EXPECT_NEAR(fit.segments[0].bandwidth_bytes_per_second, 5e9, 1e6);
    // 90 % of the best rate: s / (2 us * 5 GB/s + s) >= 0.9 * (almost 1), so s >= 90 kB, nearly.
    EXPECT_GE(fit.knee_bytes, 65536);
    EXPECT_LE(fit.knee_bytes, 262144);
  }
}

TEST(FitsOf, LeavesOutWhatIsNoCurveOrTooShort) {
  std::vector<Cell> cells;
  for (std::uint64_t bytes = 1; bytes <= 64; bytes *= 2) {
    cells.push_back(cell(k_memory_latency, 1e-9, "m0", bytes)); // a footprint here
    cells.push_back(cell(k_host_memcpy, 1e-9 * static_cast<double>(bytes), "m0", bytes));
    cells.back().status = bytes <= 8 ? CellStatus::ok : CellStatus::skipped;
  }
  EXPECT_TRUE(fits_of(cells).empty());
}

TEST(Ceilings, CountBytesAsTheCellDoes) {
  std::vector<Cell> cells{cell(k_stream_copy, 80e9, "m0"), cell(k_stream_add, 90e9, "m0"),
                          cell(k_numa_copy, 30e9),         cell(k_numa_read, 60e9),
                          cell(k_reduce_sum, 20e9, "m0"),  cell(k_optimizer_step, 10e9, "m0")};
  for (Cell& c : cells) {
    c.key.threads = 2;
  }
  cells[2].key.threads = 1; // pairs are held against all threads
  cells[4].key.sources = 4;
  cells[5].key.operation = "adam";
  add_ceilings(cells);
  EXPECT_FALSE(cells[0].ceiling);
  ASSERT_TRUE(cells[2].ceiling && cells[3].ceiling && cells[4].ceiling && cells[5].ceiling);
  EXPECT_EQ(cells[2].ceiling->name, "memory traffic of stream_add, 2 threads");
  EXPECT_DOUBLE_EQ(cells[2].ceiling->value, 45e9); // each byte is read and written
  EXPECT_DOUBLE_EQ(cells[3].ceiling->value, 90e9);
  // 4 operands: 4 read, 1 written, 3 counted.
  EXPECT_DOUBLE_EQ(cells[4].ceiling->value, 90e9 * 3 / 5);
  // Adam: 28 bytes moved for 4 bytes of parameters.
  EXPECT_DOUBLE_EQ(cells[5].ceiling->value, 90e9 / 7);
}

TEST(Ceilings, NeedAMeasurementOfAsManyThreads) {
  std::vector<Cell> cells{cell(k_stream_add, 90e9, "m0"), cell(k_reduce_sum, 20e9, "m0")};
  cells[0].key.threads = 4;
  cells[1].key.threads = 2;
  cells[1].key.sources = 2;
  add_ceilings(cells);
  EXPECT_FALSE(cells[1].ceiling);
}

} // namespace
} // namespace reckon
