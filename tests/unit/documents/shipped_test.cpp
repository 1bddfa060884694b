// SPDX-License-Identifier: Apache-2.0
#include "documents/document.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace reckon {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const fs::path k_profiles = fs::path(RECKON_SOURCE_DIR) / "profiles";

/// A folder of its own that goes with the test.
class ShippedDocuments : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "reckon-shipped-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    m_folder = name;
    ::unsetenv("RECKON_DATA_DIR");
  }
  void TearDown() override {
    ::unsetenv("RECKON_DATA_DIR");
    fs::remove_all(m_folder);
  }
  void put(const fs::path& file, const std::string& text) const {
    fs::create_directories((m_folder / file).parent_path());
    std::ofstream(m_folder / file) << text;
  }
  [[nodiscard]] static std::string message(const std::function<void()>& attempt) {
    try {
      attempt();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input);
      return e.what();
    }
    return "no error";
  }
  fs::path m_folder;
};

TEST_F(ShippedDocuments, WorkloadsAreCanonicalSoThatTheirDigestIsThatOfTheFile) {
  ASSERT_FALSE(shipped_workloads().empty());
  for (const fs::directory_entry& entry : fs::directory_iterator(k_profiles / "workloads")) {
    if (entry.path().extension() == ".json") {
      const Workload workload = read_workload(entry.path().string());
      EXPECT_EQ(workload.name, entry.path().stem().string());
      EXPECT_EQ(canonical_text(workload), read_file(entry.path().string())) << entry.path();
      EXPECT_THAT(shipped_workloads(), Contains(workload.name));
    }
  }
}

TEST_F(ShippedDocuments, ProfilesAreCanonicalSoThatTheirDigestIsThatOfTheFile) {
  for (const std::string& name : shipped_profiles()) {
    EXPECT_EQ(canonical_text(read_profile(name)),
              read_file((k_profiles / (name + ".json")).string()))
        << name;
  }
}

TEST_F(ShippedDocuments, AWorkloadIsFoundByItsName) {
  EXPECT_EQ(read_workload("resnet50").name, "resnet50");
}

TEST_F(ShippedDocuments, TheDataFolderOfTheEnvironmentComesFirst) {
  const std::string own = R"({"schema": "reckon/workload", "schema_version": 1, "name": "mine",
                              "tensors": [{"name": "t", "elements": 3}]})";
  put("workloads/resnet50.json", own);
  put("workloads/only-here.json", own);
  ::setenv("RECKON_DATA_DIR", m_folder.c_str(), 1);
  EXPECT_EQ(read_workload("resnet50").name, "mine");
  EXPECT_EQ(read_workload("only-here").name, "mine");
  EXPECT_EQ(read_workload("vgg16").name, "vgg16"); // not in that folder: the search goes on
  EXPECT_THAT(shipped_workloads(), Contains("only-here"));
}

TEST_F(ShippedDocuments, AnUnknownNameListsTheShippedOnesAndTheNearest) {
  const std::string text = message([] { static_cast<void>(read_workload("resnet5")); });
  EXPECT_THAT(text, test::Says("\"resnet5\""));
  EXPECT_THAT(text, HasSubstr("vgg16"));
}

TEST_F(ShippedDocuments, ANameThatIsAFileHereIsThatFile) {
  put("workload-without-ending",
      R"({"schema": "reckon/workload", "schema_version": 1, "name": "plain",
                                     "tensors": [{"name": "t", "elements": 3}]})");
  const fs::path before = fs::current_path();
  fs::current_path(m_folder);
  const std::string name = read_workload("workload-without-ending").name;
  fs::current_path(before);
  EXPECT_EQ(name, "plain");
}

TEST_F(ShippedDocuments, AMissingFileIsAnErrorThatNamesIt) {
  EXPECT_EQ(message([] { static_cast<void>(read_workload("/nowhere/w.json")); }),
            "cannot open /nowhere/w.json: No such file or directory");
  EXPECT_EQ(message([] { static_cast<void>(read_plan("/nowhere/p.json")); }),
            "cannot open /nowhere/p.json: No such file or directory");
}

TEST_F(ShippedDocuments, ANameWithoutItsEndingIsThatOfAFileBesideIt) {
  put("profile-of-mine.json", "{}");
  const fs::path before = fs::current_path();
  fs::current_path(m_folder);
  const std::string text = message([] { static_cast<void>(read_profile("profil-of-mine")); });
  fs::current_path(before);
  EXPECT_THAT(text, HasSubstr("did you mean \"profile-of-mine.json\"?"));
}

TEST_F(ShippedDocuments, ATextThatIsNoJsonIsRefusedAsWhatWasWanted) {
  put("README.md", "\n  # What this is\nA text.\n");
  const std::string file = (m_folder / "README.md").string();
  EXPECT_EQ(message([&] { static_cast<void>(read_plan(file)); }),
            file + " is not a plan: no JSON at line 2, column 3, but \"# What this is\"");
  EXPECT_THAT(message([&] { static_cast<void>(read_profile(file)); }),
              HasSubstr(" is not a profile: "));
  EXPECT_THAT(message([&] { static_cast<void>(read_document(file)); }),
              HasSubstr(" is not a document of reckon: "));
}

TEST_F(ShippedDocuments, AFileEndingInCsvIsImported) {
  put("net.csv", "name,elements\na,3\n");
  const Workload workload = read_workload((m_folder / "net.csv").string());
  EXPECT_EQ(workload.name, "net");
  EXPECT_EQ(workload.provenance, "imported from net.csv");
}

} // namespace
} // namespace reckon
