// SPDX-License-Identifier: Apache-2.0
#include "present/plot.hpp"

#include "core/file.hpp"
#include "support/environment_variable.hpp"
#include "support/machine_documents.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <unistd.h>

namespace reckon {
namespace {

namespace fs = std::filesystem;
using namespace testing;

/// Texts that do harm wherever they are taken for more than text. Each would leave a file "pwned".
const std::array<std::string, 12> k_hostile{
    "`touch pwned`",
    "\"`touch pwned`\"",
    "'; system('touch pwned') #",
    "''; system(\"touch pwned\"); '",
    "\"; system('touch pwned') #",
    "\n!touch pwned",
    "\nsystem('touch pwned')\n",
    "@macro $(touch pwned) ${x}",
    "\\'; system('touch pwned') #",
    "< touch pwned",
    "|touch pwned",
    "%s%n%n%5000f {/Symbol a}_b^c \\`touch pwned\\`\\",
};

/// An empty directory to work in, so that nothing can be written unnoticed.
class InEmptyDirectory : public testing::Test {
protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "reckon-plot.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    m_directory = name;
    m_before = fs::current_path();
    fs::current_path(m_directory);
  }
  void TearDown() override {
    fs::current_path(m_before);
    fs::remove_all(m_directory);
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(m_directory), fs::directory_iterator()));
  }

  fs::path m_directory, m_before;
};

TEST(Quoted, HasNothingInsideThatCouldEndIt) {
  for (const std::string& text : k_hostile) {
    for (const std::string& quoted : {quoted_for_gnuplot(text), tic_for_gnuplot(text)}) {
      ASSERT_GE(quoted.size(), 2U);
      EXPECT_EQ(quoted.front(), '\'');
      EXPECT_EQ(quoted.back(), '\'');
      const std::string inside = quoted.substr(1, quoted.size() - 2);
      EXPECT_EQ(inside.find_first_of(std::string("'`\n\r\0", 5)), std::string::npos) << inside;
    }
  }
}

TEST(Quoted, KeepsOrdinaryTextAsItIs) {
  EXPECT_EQ(quoted_for_gnuplot("tcp;ofi_rxm, 4 µs \"x\" 90 %"), "'tcp;ofi_rxm, 4 µs \"x\" 90 %'");
  EXPECT_EQ(quoted_for_gnuplot("rank 3's `x`"), "'rank 3’s ’x’'");
  EXPECT_EQ(tic_for_gnuplot("90 %"), "'90 %%'");
  EXPECT_EQ(quoted_for_gnuplot(""), "''");
}

TEST(Quoted, CutsLongTextBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += "ü";
  }
  EXPECT_EQ(quoted_for_gnuplot(text), "'" + text.substr(0, 2 * 160) + "...'");
}

#ifdef RECKON_HAVE_GNUPLOT

class Plot : public InEmptyDirectory {
protected:
  void SetUp() override {
    InEmptyDirectory::SetUp();
    if (std::system("command -v gnuplot > /dev/null") != 0) {
      GTEST_SKIP() << "gnuplot is not installed";
    }
  }
  /// Draws with `draw(path)` and gives the picture.
  template <class Draw>
  std::string picture(const std::string& name, Draw draw) {
    draw(name);
    return read_file(name);
  }
};

TEST_F(Plot, DrawsCurvesMatricesAndReportsAsSvgAndPng) {
  const Profile profile = test::machine_profile();
  const Report report = test::machine_report();
  const std::string curves =
      picture("a.svg", [&](const std::string& path) { plot_curves(profile, "", path); });
  EXPECT_THAT(curves, HasSubstr("</svg>"));
  EXPECT_THAT(curves, HasSubstr("tcp;ofi_rxm, two ways"));
  EXPECT_THAT(curves, HasSubstr("256 MiB"));
  const std::string matrix = picture("b.svg", [&](const std::string& path) {
    plot_matrix(profile, "numa_to_numa_copy_cpu", path);
  });
  EXPECT_THAT(matrix, HasSubstr("18.85"));
  EXPECT_THAT(matrix, test::Says("4 threads"));
  const std::string bars =
      picture("c.svg", [&](const std::string& path) { plot_report(report, path); });
  EXPECT_THAT(bars, HasSubstr("reduction"));
  EXPECT_THAT(bars, HasSubstr("x 3.5"));
  EXPECT_THAT(bars, test::Says("bound"));
  EXPECT_THAT(picture("d.png",
                      [&](const std::string& path) { plot_curves(profile, "fabric_write", path); }),
              StartsWith("\x89PNG"));
  EXPECT_THAT(picture("e.png", [&](const std::string& path) { plot_matrix(profile, "", path); }),
              StartsWith("\x89PNG"));
  EXPECT_EQ(files(), 5U);
}

TEST_F(Plot, NeverExecutesTextOfADocument) {
  for (const std::string& hostile : k_hostile) {
    SCOPED_TRACE(hostile);
    Profile p = test::machine_profile();
    p.name = p.source = hostile;
    std::string test = "core_to_core_latency_cas";
    for (Cell& c : p.cells) {
      c.key.from += hostile;
      c.key.to += c.key.to.empty() ? "" : hostile;
      c.key.transport += c.key.transport.empty() ? "" : hostile;
      c.key.operation += hostile;
      c.key.test += hostile;
    }
    plot_curves(p, "fabric_write" + hostile, "curves.svg");
    plot_matrix(p, test + hostile, "matrix.svg");
    Report r = test::machine_report();
    r.strategy = r.transport = r.cause = r.prediction.bound_by = hostile;
    r.stages[0].name = hostile;
    plot_report(r, "report.svg");
    EXPECT_EQ(files(), 3U); // no "pwned"
    for (const char* file : {"curves.svg", "matrix.svg", "report.svg"}) {
      const std::string svg = read_file(file);
      EXPECT_THAT(svg, HasSubstr("</svg>"));
      EXPECT_THAT(svg, HasSubstr("pwned")); // shown, as text
    }
  }
}

TEST_F(Plot, DoesNotLetTextBecomeMarkup) {
  Report r = test::machine_report();
  r.cause = "</text><script>alert(1)</script>";
  plot_report(r, "a.svg");
  EXPECT_THAT(read_file("a.svg"), Not(HasSubstr("<script")));
}

TEST_F(Plot, NeverExecutesTheNameOfTheFile) {
  for (const std::string& hostile : k_hostile) {
    std::string name = hostile + ".svg";
    std::replace(name.begin(), name.end(), '/', '_');
    plot_report(test::machine_report(), name);
    EXPECT_THAT(read_file(name), HasSubstr("</svg>"));
    fs::remove(name);
    EXPECT_EQ(files(), 0U) << hostile;
  }
}

TEST_F(Plot, IgnoresTheUsersGnuplotSettings) {
  write_file(".gnuplot", "system('touch pwned')\n");
  const test::EnvironmentVariable home("HOME", m_directory);
  const test::EnvironmentVariable command("GNUPLOT_IOSTREAM_CMD", "touch pwned");
  plot_report(test::machine_report(), "a.svg");
  EXPECT_FALSE(fs::exists("pwned"));
}

TEST_F(Plot, SaysWhatToInstallWhenGnuplotIsMissing) {
  const test::EnvironmentVariable path("PATH", m_directory);
  EXPECT_REFUSED(unavailable, "gnuplot-nox", plot_report(test::machine_report(), "a.svg"));
  EXPECT_EQ(files(), 0U);
}

/// What plot_report() says with a "gnuplot" that does what `script` says.
std::string error_with_fake(const fs::path& directory, const std::string& script) {
  write_file("gnuplot", "#!/bin/sh\n" + script);
  fs::permissions("gnuplot", fs::perms::owner_all);
  const test::EnvironmentVariable path("PATH", directory.string() + ":" + std::getenv("PATH"));
  return test::refusal([] { plot_report(test::machine_report(), "a.svg"); }, ErrorKind::operation);
}

TEST_F(Plot, PassesOnWhatGnuplotSays) {
  EXPECT_THAT(
      error_with_fake(m_directory, "cat > /dev/null; echo 'line 0: bad command' >&2; exit 1\n"),
      test::Says("line 0"));
  EXPECT_FALSE(fs::exists("a.svg"));
}

TEST_F(Plot, SurvivesAGnuplotThatEndsAtOnce) {
  EXPECT_THAT(error_with_fake(m_directory, "exit 1\n"), HasSubstr("no picture"));
  EXPECT_FALSE(fs::exists("a.svg"));
}

TEST_F(Plot, RefusesWhatItCannotDraw) {
  const Profile profile = test::machine_profile();
  EXPECT_REFUSED(usage, "", plot_curves(profile, "reduce_sum", "a.svg"));
  EXPECT_REFUSED(usage, "", plot_matrix(profile, "fabric_write", "a.svg"));
  EXPECT_REFUSED(usage, "", plot_curves(profile, "nope", "a.svg"));
  EXPECT_REFUSED(usage, "", plot_curves(Profile{}, "", "a.svg"));
  EXPECT_REFUSED(usage, "", plot_curves(profile, "", "a.pdf"));
  EXPECT_EQ(files(), 0U);
}

#else

TEST(Plot, IsUnavailableInThisBuild) {
  EXPECT_REFUSED(unavailable, "", plot_report(test::machine_report(), "a.svg"));
}

#endif

} // namespace
} // namespace reckon
