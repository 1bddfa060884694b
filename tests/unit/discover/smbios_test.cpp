// SPDX-License-Identifier: Apache-2.0
#include "discover/smbios.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

/// A type 17 structure of 0x28 bytes; `size` is the field at 0x0c, `extended` that at 0x1c.
std::string module(unsigned size, unsigned extended, unsigned type, unsigned speed) {
  std::string s(0x28, '\0');
  s[0] = 17;
  s[1] = 0x28;
  const auto put = [&](std::size_t at, unsigned value, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      s[at++] = static_cast<char>(value >> (8 * i) & 0xffU);
    }
  };
  put(0x0c, size, 2);
  put(0x12, type, 1);
  put(0x1c, extended, 4);
  put(0x20, speed, 2);
  return s + std::string("DIMM 0\0\0", 8);
}

TEST(Smbios, CountsEqualModules) {
  // 0x7fff: see the extended size, in MiB: 64 GiB = 65536 MiB. 0x22 is DDR5.
  const std::string bios = std::string("\0\x04\0\0\0\0", 6); // some other structure, no strings
  const std::string big = module(0x7fff, 65536, 0x22, 4800);
  EXPECT_EQ(memory_modules(bios + big + module(0, 0, 0x22, 0) + big),
            "2 x 64 GiB DDR5 4800 MT/s"); // the empty slot does not count
  // 16384 MiB stand in the short field. 0x1a is DDR4; without a speed none is claimed.
  EXPECT_EQ(memory_modules(module(16384, 0, 0x1a, 0)), "1 x 16 GiB DDR4");
  // Bit 15 of the short field: the size is in KiB; 0x8000 + 0x7c00 KiB = 31 MiB.
  EXPECT_EQ(memory_modules(module(0xfc00, 0, 0x1a, 0)), "1 x 31 MiB DDR4");
}

TEST(Smbios, DamagedTablesEndQuietly) {
  const std::string good = module(16384, 0, 0x1a, 3200);
  for (std::size_t n = 0; n < good.size(); ++n) {
    const std::string said = memory_modules(good.substr(0, n)); // no read beyond the end (asan)
    EXPECT_TRUE(said.empty() || said == "1 x 16 GiB DDR4 3200 MT/s") << n << ": " << said;
  }
  EXPECT_EQ(memory_modules(""), "");
  EXPECT_EQ(memory_modules(good + std::string("\x11\x02\0\0", 4)), "1 x 16 GiB DDR4 3200 MT/s");
}

} // namespace
} // namespace reckon
