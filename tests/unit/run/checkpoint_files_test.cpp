// SPDX-License-Identifier: Apache-2.0
// A checkpoint's files: whatever is torn off or flipped is found.
#include "run/checkpoint_files.hpp"

#include "core/digest.hpp"
#include "core/file.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <unistd.h>

namespace reckon {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Two stretches of 256 and 64 bytes that a rank saves, of 0, 1, 2, ... and 0, 3, 6, ...
class CheckpointFiles : public testing::Test {
protected:
  CheckpointFiles()
      : m_path(std::filesystem::temp_directory_path() /
               ("reckon-checkpoints-" + std::to_string(::getpid()))),
        m_folder(m_path.string()) {
    m_folder.create();
    for (std::size_t i = 0; i < m_memory.size(); ++i) {
      m_memory[i] = static_cast<std::byte>(i < 256 ? i : 3 * i);
    }
    m_saving.saved = {{{0, 4096, 256, {1, 0}}, {0, 0}}, {{1, 4096, 64, {2, 0}}, {0, 256}}};
  }
  ~CheckpointFiles() override { std::filesystem::remove_all(m_path); }

  std::string write() {
    return write_part(m_folder, m_job, 7, Optimizer::momentum, m_saving, m_views);
  }
  [[nodiscard]] std::string refusal(const std::string& digest) const {
    try {
      static_cast<void>(read_part(m_folder, m_job, 7, digest, m_saving));
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input);
      EXPECT_THAT(e.what(), HasSubstr(m_folder.part(7, 2)));
      return e.what();
    }
    return "";
  }
  void put(std::string_view content) const {
    std::ofstream(m_folder.part(7, 2), std::ios::binary) << content;
  }

  std::filesystem::path m_path;
  CheckpointFolder m_folder;
  CheckpointJob m_job{digest_of("a plan"), 2, 4};
  RankProgram m_saving;
  std::array<std::byte, 320> m_memory{};
  std::array<std::span<std::byte>, 1> m_views{std::span<std::byte>(m_memory)};
};

TEST_F(CheckpointFiles, WhatWasWrittenIsRead) {
  const std::string digest = write();
  const std::string once = read_file(m_folder.part(7, 2));
  const SealedFile file = read_part(m_folder, m_job, 7, digest, m_saving);
  ASSERT_EQ(file.data.size(), 320U);
  EXPECT_EQ(std::memcmp(file.data.data(), m_memory.data(), 320), 0);
  EXPECT_EQ(file.digest, digest);
  // The seal is the digest of all before it, as sha256sum would say.
  EXPECT_EQ(digest_of(std::string_view(file.content).substr(0, file.content.size() - k_seal_bytes)),
            digest);
  EXPECT_EQ(write(), digest);
  EXPECT_EQ(read_file(m_folder.part(7, 2)), once); // the same bytes give the same file
}

TEST_F(CheckpointFiles, AFileTornAtAnyByteIsFound) {
  const std::string digest = write();
  const std::string whole = read_file(m_folder.part(7, 2));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    put(std::string_view(whole).substr(0, length));
    ASSERT_THAT(refusal(digest), HasSubstr("is torn")) << length << " of " << whole.size();
  }
  put(whole + "x");
  EXPECT_THAT(refusal(digest), HasSubstr("is torn"));
  put(whole);
  EXPECT_EQ(refusal(digest), "");
}

TEST_F(CheckpointFiles, AnyFlippedBitIsFound) {
  const std::string digest = write();
  const std::string whole = read_file(m_folder.part(7, 2));
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    put(damaged);
    ASSERT_THAT(refusal(digest), AnyOf(HasSubstr("is torn"), HasSubstr("is corrupted")))
        << "bit " << bit;
  }
}

TEST_F(CheckpointFiles, AHeaderNestedDeeperThanAnyIsRefused) {
  // Its text would be part of a message, and writing it would exhaust the stack.
  constexpr std::size_t k_levels = 100'000;
  const std::string header =
      R"({"schema":"reckon/checkpoint","schema_version":1,"step":7,"bytes":0,"ranks":)" +
      std::string(k_levels, '[') + std::string(k_levels, ']') + "}\n";
  put(header + digest_of(header) + "\n");
  std::filesystem::rename(m_folder.part(7, 2), m_folder.manifest(7));
  bool foreign = true;
  EXPECT_THAT(test::refusal([&] { return read_manifest(m_folder, m_job, 7, foreign); }),
              HasSubstr("is corrupted"));
  EXPECT_FALSE(foreign);
}

TEST_F(CheckpointFiles, ZeroesInPlaceOfABlockAreFound) {
  // What some file systems leave where a block was announced and not written.
  const std::string digest = write();
  const std::string whole = read_file(m_folder.part(7, 2));
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    std::string damaged = whole;
    const std::size_t begin = random() % (whole.size() - 1);
    const std::size_t length = 1 + random() % (whole.size() - begin);
    std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(begin), length, '\0');
    if (damaged == whole) {
      continue;
    }
    put(damaged);
    ASSERT_NE(refusal(digest), "") << "seed 11, case " << i;
  }
}

TEST_F(CheckpointFiles, AWholeFileOfAnotherMomentIsNotTheOneThatBelongsHere) {
  const std::string digest = write();
  m_memory[17] ^= std::byte{1};
  static_cast<void>(write());
  EXPECT_THAT(refusal(digest), test::Says("checkpoint"));
}

TEST_F(CheckpointFiles, AnotherLayoutIsRefused) {
  const std::string digest = write();
  m_saving.saved[1].kept.gradient_offset = 0;
  EXPECT_THAT(refusal(digest), HasSubstr("another layout"));
  EXPECT_THAT(refusal(digest), HasSubstr("wrote it"));
}

TEST_F(CheckpointFiles, TheManifestSaysWhoseItIs) {
  const CheckpointManifest made{7, {"a", "b", "c", "d"}};
  write_manifest(m_folder, m_job, made);
  bool foreign = true;
  EXPECT_THAT(read_manifest(m_folder, m_job, 7, foreign).digests, ElementsAre("a", "b", "c", "d"));
  EXPECT_FALSE(foreign);
  CheckpointJob other = m_job;
  other.plan = digest_of("another plan");
  EXPECT_THAT(test::refusal([&] { return read_manifest(m_folder, other, 7, foreign); }),
              testing::AllOf(HasSubstr(m_job.plan), HasSubstr(other.plan)));
  EXPECT_TRUE(foreign);
  other = m_job;
  other.ranks = 5;
  EXPECT_ERROR(read_manifest(m_folder, other, 7, foreign));
  EXPECT_TRUE(foreign);
  std::filesystem::resize_file(m_folder.manifest(7), 40);
  EXPECT_ERROR(read_manifest(m_folder, m_job, 7, foreign));
  EXPECT_FALSE(foreign);
}

TEST_F(CheckpointFiles, AFolderIsReadByItsNames) {
  for (const char* const name :
       {"step-00000012.complete", "step-00000003.complete", "step-100000000.complete",
        "step-.complete", "step-4x.complete", "step-00000005.complete.77.0.tmp",
        "step-00000009.rank-0002.bin", "step-00000009.rank-0003.bin",
        "step-00000010.rank-0002.bin.77.1.tmp", "step-00000010.rank-0003.bin.77.1.tmp",
        "mine.tmp"}) {
    std::ofstream(m_path / name) << "x";
  }
  EXPECT_THAT(m_folder.complete_steps(), ElementsAre(3, 12, 100000000));
  EXPECT_THAT(m_folder.steps_of(2), ElementsAre(9));
  m_folder.remove_leftovers(2);
  EXPECT_FALSE(std::filesystem::exists(m_path / "step-00000010.rank-0002.bin.77.1.tmp"));
  EXPECT_TRUE(std::filesystem::exists(m_path / "step-00000010.rank-0003.bin.77.1.tmp"));
  EXPECT_TRUE(std::filesystem::exists(m_path / "step-00000005.complete.77.0.tmp"));
  m_folder.remove_leftovers(0);
  EXPECT_FALSE(std::filesystem::exists(m_path / "step-00000005.complete.77.0.tmp"));
  EXPECT_TRUE(std::filesystem::exists(m_path / "mine.tmp"));
  EXPECT_THAT(CheckpointFolder("/nonexistent/folder").complete_steps(), testing::IsEmpty());
}

} // namespace
} // namespace reckon
