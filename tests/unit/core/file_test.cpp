// SPDX-License-Identifier: Apache-2.0
#include "core/file.hpp"

#include "core/error.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace reckon {
namespace {

namespace fs = std::filesystem;
using namespace testing;

class File : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "reckon-file-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    m_folder = name;
  }
  void TearDown() override { fs::remove_all(m_folder); }
  [[nodiscard]] std::string at(const std::string& name) const { return (m_folder / name).string(); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(m_folder)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  [[nodiscard]] static std::string write_error(const std::string& path, std::string_view content) {
    try {
      write_file(path, content);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::operation);
      return e.what();
    }
    return "ok";
  }
  fs::path m_folder;
};

TEST_F(File, WhatIsWrittenIsRead) {
  const std::string content("a\0b\n\xff", 5);
  write_file(at("x"), content);
  EXPECT_EQ(read_file(at("x")), content);
  EXPECT_THAT(names(), ElementsAre("x"));
}

TEST_F(File, EmptyAndLongContentsSurvive) {
  write_file(at("empty"), "");
  EXPECT_EQ(read_file(at("empty")), "");
  // Around the reader's step of 64 KiB.
  for (const std::size_t n : {65535U, 65536U, 65537U, 200000U}) {
    const std::string content(n, 'x');
    write_file(at("long"), content);
    EXPECT_EQ(read_file(at("long")), content);
  }
}

TEST_F(File, AMissingFileIsAnInputErrorThatNamesTheNearestOne) {
  write_file(at("profile.json"), "{}");
  write_file(at("notes"), "");
  fs::create_directory(at("profle"));
  EXPECT_EQ(near_file(at("profil.json")), at("profile.json"));
  EXPECT_EQ(near_file(at("profil")), at("profile.json"));
  EXPECT_EQ(near_file(at("missing.json")), "");
  EXPECT_EQ(near_file(at("profil.csv")), "");
  EXPECT_EQ(near_file(at("nowhere/profile.json")), "");
  EXPECT_EQ(test::refusal([&] { return read_file(at("profle.json")); }),
            "cannot open " + at("profle.json") + ": No such file or directory; did you mean " +
                at("profile.json") + "?");
}

TEST_F(File, AMissingFileIsAnInputErrorThatNamesIt) {
  try {
    static_cast<void>(read_file(at("none")));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    EXPECT_EQ(std::string(e.what()), "cannot open " + at("none") + ": No such file or directory");
  }
}

// A folder can be opened and not read, as the files of the kernel that refuse.
TEST_F(File, AFolderIsListedAndOneThatCannotBeReadIsEmpty) {
  write_file(at("a"), "");
  write_file(at("b"), "");
  EXPECT_THAT(names_in(m_folder.string()), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(names_in(at("missing")), IsEmpty());
  EXPECT_THAT(names_in(at("a")), IsEmpty()) << "it is no folder";
}

TEST_F(File, WhatMayNotBeReadableIsAbsentThen) {
  write_file(at("x"), "text\n");
  EXPECT_EQ(read_if_readable(at("x")), "text\n");
  EXPECT_EQ(read_if_readable(at("none")), std::nullopt);
  EXPECT_EQ(read_if_readable(m_folder.string()), std::nullopt);
}

TEST_F(File, AFolderCannotBeReadOrReplaced) {
  EXPECT_ERROR(read_file(m_folder.string()));
  EXPECT_EQ(write_error(m_folder.string(), "x"),
            "cannot write " + m_folder.string() + ": Is a directory");
}

TEST_F(File, WhetherAFileCanBeWrittenIsKnownBefore) {
  for (const std::string& path : {m_folder.string(), at("none/x")}) {
    EXPECT_EQ(test::refusal([&] { require_writable(path); }, ErrorKind::operation),
              write_error(path, "x"));
  }
  write_file(at("old"), "old");
  fs::create_symlink("new", m_folder / "link");
  for (const std::string& path :
       {std::string("-"), std::string("/dev/null"), at("old"), at("new"), at("link")}) {
    EXPECT_NO_THROW(require_writable(path)) << path;
  }
  EXPECT_EQ(read_file(at("old")), "old");
  EXPECT_FALSE(fs::exists(at("new")));
}

TEST_F(File, ReplacingKeepsThePermissionsAndLeavesNothingElse) {
  write_file(at("x"), "old");
  fs::permissions(at("x"), fs::perms(0666)); // more than the usual umask would allow
  write_file(at("x"), "new");
  EXPECT_EQ(read_file(at("x")), "new");
  EXPECT_EQ(fs::status(at("x")).permissions(), fs::perms(0666));
  EXPECT_THAT(names(), ElementsAre("x"));
}

TEST_F(File, ANewFileObeysTheUmask) {
  const mode_t before = ::umask(077);
  write_file(at("x"), "secret");
  ::umask(before);
  EXPECT_EQ(fs::status(at("x")).permissions(), fs::perms(0600));
}

TEST_F(File, AReaderHoldsTheOldFileWhileTheNewOneComes) {
  write_file(at("x"), "old");
  const Fd reader(::open(at("x").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(reader);
  write_file(at("x"), "new and longer");
  std::string seen(20, ' ');
  seen.resize(static_cast<std::size_t>(::read(reader.get(), seen.data(), seen.size())));
  EXPECT_EQ(seen, "old");
}

TEST_F(File, AFailedWriteKeepsTheOldFileAndLeavesNothing) {
  write_file(at("x"), "old");
  // The kernel refuses to make files longer than this limit, as a full disk would.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 1000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = write_error(at("x"), std::string(5000, 'n'));
  const std::string message_of_new = write_error(at("y"), std::string(5000, 'n'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(message, "cannot write " + at("x") + ": File too large");
  EXPECT_EQ(message_of_new, "cannot write " + at("y") + ": File too large");
  EXPECT_EQ(read_file(at("x")), "old");
  EXPECT_THAT(names(), ElementsAre("x"));
}

TEST_F(File, AFolderThatMayNotBeWrittenIsAnError) {
  fs::permissions(m_folder, fs::perms(0555));
  const auto attempt = [&] {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) { // root may write anywhere
      std::_Exit(2);
    }
    std::_Exit(
        write_error(at("x"), "new") == "cannot write " + at("x") + ": Permission denied" ? 0 : 1);
  };
  EXPECT_EXIT(attempt(), ::testing::ExitedWithCode(0), "");
  fs::permissions(m_folder, fs::perms(0755));
  EXPECT_TRUE(names().empty());
}

TEST_F(File, AMissingFolderIsAnError) {
  EXPECT_EQ(write_error(at("none/x"), "new"),
            "cannot write " + at("none/x") + ": No such file or directory");
}

TEST_F(File, ALinkStaysAndItsTargetIsReplaced) {
  write_file(at("target"), "old");
  fs::create_symlink("target", at("link")); // relative to the link's own folder
  fs::create_symlink(at("link"), at("link2"));
  write_file(at("link2"), "new");
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_TRUE(fs::is_symlink(at("link2")));
  EXPECT_FALSE(fs::is_symlink(at("target")));
  EXPECT_EQ(read_file(at("target")), "new");
  EXPECT_THAT(names(), ElementsAre("link", "link2", "target"));
}

TEST_F(File, ALinkToNothingCreatesItsTarget) {
  fs::create_symlink("target", at("link"));
  write_file(at("link"), "new");
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(read_file(at("target")), "new");
}

TEST_F(File, ACircleOfLinksIsAnError) {
  fs::create_symlink("b", at("a"));
  fs::create_symlink("a", at("b"));
  EXPECT_EQ(write_error(at("a"), "new"),
            "cannot write " + at("a") + ": Too many levels of symbolic links");
  EXPECT_THAT(names(), ElementsAre("a", "b"));
}

TEST_F(File, ADeviceIsWrittenToAndNotReplaced) {
  write_file("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(write_error("/dev/full", "x"), "cannot write /dev/full: No space left on device");
}

TEST_F(File, ForItsOwnerAloneItReplacesALinkAndWhatOthersCouldRead) {
  const auto write = [&](const std::string& path) {
    const std::string_view content = "secret";
    write_file(path, std::span(&content, 1), Readers::owner);
    struct stat about {};
    ASSERT_EQ(::lstat(path.c_str(), &about), 0);
    EXPECT_TRUE(S_ISREG(about.st_mode));
    EXPECT_EQ(about.st_mode & 0777U, 0600U);
    EXPECT_EQ(read_file(path), "secret");
  };
  write_file(at("other"), "kept");
  fs::create_symlink(at("other"), at("link"));
  write(at("link"));
  EXPECT_EQ(read_file(at("other")), "kept");
  write(at("other"));
  EXPECT_THAT(names(), ElementsAre("link", "other"));
}

TEST_F(File, WithoutDescriptorsItIsNotTheFileThatIsWrong) {
  write_file(at("x"), "text");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  std::optional<Error> error;
  try {
    static_cast<void>(read_file(at("x")));
  } catch (const Error& caught) {
    error = caught;
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::operation);
  EXPECT_THAT(error->what(), HasSubstr("x: Too many open files"));
}

TEST_F(File, ThreadsThatWriteTheSameFileLeaveOneOfTheContents) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 20; ++i) {
        write_file(at("x"), std::string(10000, static_cast<char>('a' + t)));
      }
    });
  }
  threads.clear();
  const std::string content = read_file(at("x"));
  EXPECT_EQ(content, std::string(10000, content.at(0)));
  EXPECT_THAT(names(), ElementsAre("x"));
}

TEST(FdOwner, ClosesOnceAndMovesAway) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Fd read_end(ends[0]);
  {
    Fd a(ends[1]);
    Fd b(std::move(a));
    EXPECT_FALSE(a); // NOLINT(bugprone-use-after-move): that is the question
    EXPECT_EQ(b.get(), ends[1]);
    b = Fd();
    char c = 0;
    EXPECT_EQ(::read(read_end.get(), &c, 1), 0); // end of file: the write end is closed
  }
  Fd released(::dup(read_end.get()));
  const int raw = released.release();
  EXPECT_FALSE(released);
  EXPECT_EQ(::close(raw), 0);
}

} // namespace
} // namespace reckon
