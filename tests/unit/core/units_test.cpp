// SPDX-License-Identifier: Apache-2.0
#include "core/units.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace reckon {
namespace {

/// What `parse` says of `text`; "ok" when it takes it.
template <class Parse>
std::string message(Parse parse, std::string_view text) {
  try {
    static_cast<void>(parse(text, "--flag"));
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage) << e.what();
    return e.what();
  }
  return "ok";
}

TEST(ParseBytes, KnowsEveryUnit) {
  const std::vector<std::pair<const char*, std::uint64_t>> table{
      {"0", 0},
      {"4096", 4096},
      {"7B", 7},
      {"64k", 65536},
      {"64K", 65536},
      {"3m", 3U << 20U},
      {"3M", 3U << 20U},
      {"2g", 2147483648},
      {"2G", 2147483648},
      {"5kB", 5000},
      {"5KB", 5000},
      {"553MB", 553000000},
      {"4GB", 4000000000},
      {"2TB", 2000000000000},
      {"1PB", 1000000000000000},
      {"4KiB", 4096},
      {"4kiB", 4096},
      {"4MiB", 4194304},
      {"1GiB", 1073741824},
      {"1TiB", 1099511627776},
      {"4Ki", 4096},
      {"4Mi", 4194304},
      {"1Gi", 1073741824},
      {"1Ti", 1099511627776},
      {"1.5KiB", 1536},
      {"0.5MB", 500000},
      {"4 MiB", 4194304},
      {"1e3B", 1000},
      {"9.1e18", 9100000000000000000ULL}};
  for (const auto& [text, bytes] : table) {
    EXPECT_EQ(parse_bytes(text, "--flag").count(), bytes) << text;
  }
}

TEST(ParseBytes, ADecimalFractionThatIsWholeInBytesIsExact) {
  // 1.001e6 is 1000999.9999999999 in doubles.
  for (unsigned k = 0; k < 1000; ++k) {
    EXPECT_EQ(parse_bytes(fmt::format("1.{:03}MB", k), "--flag").count(), 1000000U + 1000U * k);
  }
}

TEST(ParseBytes, RoundsAFractionOfAGreaterUnitToTheNearestByte) {
  // 3.3 * 2^30 = 3543348019.2; 1000.1 B; 0.6 B.
  EXPECT_EQ(parse_bytes("3.3GiB", "--flag").count(), 3543348019U);
  EXPECT_EQ(parse_bytes("1.0001kB", "--flag").count(), 1000U);
  EXPECT_EQ(parse_bytes("0.0006kB", "--flag").count(), 1U);
}

TEST(ParseBytes, SaysWhatIsWrong) {
  const std::string no_number = " is not a number with a unit; write e.g. 4MiB or 553MB";
  for (const char* text : {"", "MiB", "x4", "--4", " 4MiB", "nan", "inf", "+4"}) {
    EXPECT_EQ(message(parse_bytes, text), fmt::format("--flag: '{}'{}", text, no_number));
  }
  const std::string no_unit =
      " has no size unit that is known; use B, kB, MB, GB (powers of 1000) or KiB, MiB, GiB";
  for (const char* text :
       {"4Mb", "4Mbit", "4mb", "4MIB", "4KIB", "4b", "4MiBs", "4MB/s", "4s", "0x10", "4,5MB"}) {
    EXPECT_EQ(message(parse_bytes, text), fmt::format("--flag: '{}'{}", text, no_unit));
  }
  EXPECT_EQ(message(parse_bytes, "-4MiB"), "--flag: '-4MiB' must be between 0 and 9.2e18 bytes");
  EXPECT_EQ(message(parse_bytes, "1e30"), "--flag: '1e30' must be between 0 and 9.2e18 bytes");
  EXPECT_EQ(message(parse_bytes, "1e400"), "--flag: '1e400'" + no_number);
  EXPECT_EQ(message(parse_bytes, "9.3e18B"),
            "--flag: '9.3e18B' must be between 0 and 9.2e18 bytes");
  EXPECT_EQ(message(parse_bytes, "0.5B"), "--flag: '0.5B' is not a whole number of bytes");
  EXPECT_EQ(message(parse_bytes, "1.5"), "--flag: '1.5' is not a whole number of bytes");
}

TEST(ParseBandwidth, BitsAndBytesAreDifferent) {
  const std::vector<std::pair<const char*, double>> table{{"100Gb/s", 12.5e9},
                                                          {"100Gbit/s", 12.5e9},
                                                          {"100Gbits/s", 12.5e9},
                                                          {"100Gbps", 12.5e9},
                                                          {"8b/s", 1},
                                                          {"8kb/s", 1000},
                                                          {"8Kb/s", 1000},
                                                          {"8Mb/s", 1e6},
                                                          {"8Tb/s", 1e12},
                                                          {"8Gib/s", 1073741824},
                                                          {"12.5GB/s", 12.5e9},
                                                          {"12.5GBps", 12.5e9},
                                                          {"1GiB/s", 1073741824},
                                                          {"1MiB/s", 1048576},
                                                          {"1KiB/s", 1024},
                                                          {"3B/s", 3},
                                                          {"3kB/s", 3000},
                                                          {"3 MB/s", 3e6},
                                                          {"3TB/s", 3e12}};
  for (const auto& [text, rate] : table) {
    EXPECT_DOUBLE_EQ(parse_bandwidth(text, "--flag").as_bytes_per_s(), rate) << text;
  }
}

TEST(ParseBandwidth, SaysWhatIsWrong) {
  for (const char* text :
       {"100", "100G", "100GB", "100gb/s", "100Gb", "100Gb/min", "100GB/h", "100/s", "100Eb/s"}) {
    EXPECT_EQ(
        message(parse_bandwidth, text),
        fmt::format("--flag: '{}' has no rate unit that is known; use Gb/s (bits) or GB/s (bytes)",
                    text));
  }
  EXPECT_EQ(message(parse_bandwidth, "fast"),
            "--flag: 'fast' is not a number with a unit; write e.g. 100Gb/s or 12.5GB/s");
  EXPECT_EQ(message(parse_bandwidth, "0GB/s"), "--flag: '0GB/s' must be greater than 0");
  EXPECT_EQ(message(parse_bandwidth, "-1GB/s"), "--flag: '-1GB/s' must be greater than 0");
  EXPECT_EQ(message(parse_bandwidth, "1e308GB/s"), "--flag: '1e308GB/s' is more than 1e9 GB/s");
}

TEST(ParseSeconds, KnowsEveryUnit) {
  const std::vector<std::pair<const char*, double>> table{
      {"30s", 30},   {"5ms", 5e-3},  {"10us", 1e-5}, {"10µs", 1e-5}, {"100ns", 1e-7},
      {"2min", 120}, {"1.5h", 5400}, {"0s", 0},      {"1 ms", 1e-3}};
  for (const auto& [text, seconds] : table) {
    EXPECT_DOUBLE_EQ(parse_seconds(text, "--flag").count(), seconds) << text;
  }
  EXPECT_EQ(message(parse_seconds, "30"),
            "--flag: '30' has no time unit; use s, ms, us, ns or min");
  EXPECT_EQ(message(parse_seconds, "30S"),
            "--flag: '30S' has no time unit; use s, ms, us, ns or min");
  EXPECT_EQ(message(parse_seconds, "2e9s"), "--flag: '2e9s' is more than 1000000000 s");
  EXPECT_EQ(message(parse_seconds, "-1s"), "--flag: '-1s' must not be negative");
  EXPECT_EQ(message(parse_seconds, "soon"),
            "--flag: 'soon' is not a number with a unit; write e.g. 30s or 5ms");
}

TEST(ParseFraction, TakesPercentAndPlainNumbers) {
  EXPECT_DOUBLE_EQ(parse_fraction("15%", "--flag"), 0.15);
  EXPECT_DOUBLE_EQ(parse_fraction("15 %", "--flag"), 0.15);
  EXPECT_DOUBLE_EQ(parse_fraction("0.15", "--flag"), 0.15);
  EXPECT_DOUBLE_EQ(parse_fraction("0", "--flag"), 0);
  for (const char* text : {"-1%", "15x", "15%%", "-0.1"}) {
    EXPECT_EQ(message(parse_fraction, text),
              fmt::format("--flag: '{}' must be a fraction such as 15% or 0.15", text));
  }
  EXPECT_EQ(message(parse_fraction, "%"),
            "--flag: '%' is not a number with a unit; write e.g. 15% or 0.15");
}

TEST(ToText, KeepsFourDigitsAndNeverShowsAThousandOfTheSmallerUnit) {
  EXPECT_EQ(to_text(Bytes(0)), "0 B");
  EXPECT_EQ(to_text(Bytes(64)), "64 B");
  EXPECT_EQ(to_text(Bytes(1023)), "1023 B");
  EXPECT_EQ(to_text(Bytes(1024)), "1 KiB");
  EXPECT_EQ(to_text(Bytes(1572864)), "1.5 MiB");
  EXPECT_EQ(to_text(Bytes(1048575)), "1 MiB"); // 1023.999 KiB
  EXPECT_EQ(to_text(Bytes(2147483648)), "2 GiB");
  EXPECT_EQ(to_text(Bandwidth::bytes_per_s(12.34e9)), "12.34 GB/s");
  EXPECT_EQ(to_text(Bandwidth::bytes_per_s(999.999e6)), "1 GB/s");
  EXPECT_EQ(to_text(Bandwidth::bytes_per_s(5e3)), "5 kB/s");
  EXPECT_EQ(to_text(Bandwidth::bytes_per_s(std::numeric_limits<double>::infinity())), "unlimited");
  EXPECT_EQ(to_text(Seconds(0)), "0 s");
  EXPECT_EQ(to_text(Seconds(12.34e-3)), "12.34 ms");
  EXPECT_EQ(to_text(Seconds(999.9999e-6)), "1 ms");
  EXPECT_EQ(to_text(Seconds(90)), "90 s");
}

TEST(FasterText, SaysTimesFromTwiceAsFastOn) {
  EXPECT_EQ(faster_text(0.88), "12.0 % faster");
  EXPECT_EQ(faster_text(0.5), "2.0 x faster");
  EXPECT_EQ(faster_text(0.097), "10.3 x faster"); // 1 / 0.097 = 10.309
  EXPECT_EQ(faster_text(0), "> 1000 x faster");
}

TEST(Clock, TimesBeyondAllDeadlinesAreOneLongTime) {
  constexpr std::int64_t k_most = std::int64_t{1} << 61U;
  EXPECT_EQ(to_ns(Seconds(1.5)), 1'500'000'000);
  EXPECT_EQ(to_ns(Seconds(-2)), -2'000'000'000);
  for (const double seconds : {2.4e9, 1e300, std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(to_ns(Seconds(seconds)), k_most) << seconds;
    EXPECT_GT(deadline_after(Seconds(seconds)), k_most) << seconds; // and did not overflow
  }
}

} // namespace
} // namespace reckon
