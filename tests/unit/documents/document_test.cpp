// SPDX-License-Identifier: Apache-2.0
#include "documents/document.hpp"

#include "core/digest.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "support/example_documents.hpp"
#include "unit/documents/changed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <memory>

namespace reckon {
namespace {

using test::expect_messages;
using test::remove;
using test::set;
using test::verdict;

TEST(Header, SaysWhatIsWrongWithIt) {
  const std::string no_document =
      "this is no reckon document; the key \"schema\" must be one of reckon/profile, "
      "reckon/workload, reckon/roles, reckon/plan, reckon/report, reckon/requirements";
  expect_messages(
      to_json(test::example_roles()),
      {
          {{remove("/schema")}, no_document},
          {{set("/schema", "roles")},
           "/schema: is \"roles\"; must be one of reckon/profile, reckon/workload, reckon/roles, "
           "reckon/plan, reckon/report, reckon/requirements"},
          {{remove("/schema_version")}, "the key \"schema_version\" is missing; add it"},
          {{set("/schema_version", 0)}, "/schema_version: must be at least 1, is 0"},
          {{set("/schema_version", "1")}, "/schema_version: must be a number, is \"1\""},
          {{set("/schema_version", 2)},
           "/schema_version: is 2, and this reckon reads up to 1: written by a newer reckon; "
           "update "
           "reckon, or make the file again with this one"},
      });
  EXPECT_EQ(verdict(Json::array()), "f.json: " + no_document);
  EXPECT_EQ(verdict(Json(3)), "f.json: " + no_document);
}

TEST(Header, AnotherKindIsNamedBesideTheOneThatIsWanted) {
  const auto message = [](auto reader, const Json& json) -> std::string {
    try {
      static_cast<void>(reader(json, "f.json"));
    } catch (const Error& e) {
      return e.what();
    }
    return "ok";
  };
  const Json plan = to_json(test::example_plan());
  const Json roles = to_json(test::example_roles());
  EXPECT_EQ(message(profile_from_json, plan),
            "f.json: /schema: this is a plan, a profile is wanted here");
  EXPECT_EQ(message(workload_from_json, plan),
            "f.json: /schema: this is a plan, a workload is wanted here");
  EXPECT_EQ(message(report_from_json, plan),
            "f.json: /schema: this is a plan, a report is wanted here");
  EXPECT_EQ(message(roles_from_json, plan),
            "f.json: /schema: this is a plan, a roles document is wanted here");
  EXPECT_EQ(message(plan_from_json, roles),
            "f.json: /schema: this is a roles document, a plan is wanted here");
}

TEST(Header, EveryDocumentKnowsItsKind) {
  EXPECT_EQ(kind_of(test::example_profile()), "profile");
  EXPECT_EQ(kind_of(test::example_workload()), "workload");
  EXPECT_EQ(kind_of(test::example_roles()), "roles");
  EXPECT_EQ(kind_of(test::example_plan()), "plan");
  EXPECT_EQ(kind_of(test::example_report()), "report");
}

TEST(AnyDocument, NullIsNoSpellingOfAbsence) {
  expect_messages(
      to_json(test::example_workload()),
      {{{set("/forward_seconds", nullptr)},
        "/forward_seconds: null is not allowed; give a value or remove the key"},
       {{set("/tensors/1/dtype", nullptr)},
        "/tensors/1/dtype: null is not allowed; give a value or remove the "
        "key"}});
}

TEST(AnyDocument, AnUnknownKeyNamesTheNearestOne) {
  expect_messages(to_json(test::example_workload()),
                  {{{set("/forward_second", 1)},
                    "/forward_second: unknown key; did you mean \"forward_seconds\"?"},
                   {{set("/tensors/0/zzzzzzzz", 1)},
                    "/tensors/0/zzzzzzzz: unknown key; known here: name, elements, dtype"}});
}

TEST(AnyDocument, AHostileKeyStaysInOneLine) {
  expect_messages(
      to_json(test::example_workload()),
      {{{set("/name\x1b\n", 1)}, "/name\\u001b\\u000a: unknown key; did you mean \"name\"?"}});
}

TEST(Link, HoldsTheDigestThatSha256sumPrints) {
  const std::string text = canonical_text(test::example_plan());
  const DocumentLink link = link_to("plan", text);
  EXPECT_EQ(link.name, "plan");
  EXPECT_EQ(link.digest, digest_of(text));
  const std::string file = ::testing::TempDir() + "reckon-link-test.json";
  write_file(file, text);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(("sha256sum " + file).c_str(), "r"),
                                                   &::pclose);
  ASSERT_NE(pipe, nullptr);
  std::string printed(64, ' ');
  ASSERT_EQ(std::fread(printed.data(), 1, printed.size(), pipe.get()), printed.size());
  std::filesystem::remove(file);
  EXPECT_EQ(link.digest, "sha256:" + printed);
}

TEST(Roles, MistakesAreNamed) {
  expect_messages(
      to_json(test::example_roles()),
      {
          {{remove("/name")}, "the key \"name\" is missing; add it"},
          {{set("/groups", Json::array())},
           "/groups: is empty; at least one group of ranks is needed"},
          {{set("/groups/0/count", 0)},
           "/groups/0/count: must be a whole number from 1 to 1000000, is 0"},
          {{set("/groups/0/count", -1)},
           "/groups/0/count: must be a whole number from 1 to 1000000, is -1"},
          {{set("/groups/0/lanes", -1)},
           "/groups/0/lanes: must be a whole number from 0 to 4096, is -1"},
          {{set("/groups/0/worker", "yes")}, "/groups/0/worker: must be true or false, is \"yes\""},
          {{set("/groups/1/server", false)},
           "/groups/1: is neither worker nor server; set \"worker\" or \"server\" to true, or "
           "remove the "
           "group"},
          {{set("/groups/0/worker", false), set("/groups/0/server", true)},
           "/groups: there is no worker; set \"worker\" to true in at least one group"},
          {{remove("/groups/0/machine")}, "/groups/0: the key \"machine\" is missing; add it"},
          {{set("/groups/0/machine", "")},
           "/groups/0/machine: must be a name: 1 to 256 characters, no control characters"},
      });
}

TEST(Roles, WhatIsLeftOutHasADefault) {
  const Json json = Json::parse(R"({"schema": "reckon/roles", "schema_version": 1, "name": "r",
                                    "groups": [{"machine": "m0", "worker": true}]})");
  const Roles roles = roles_from_json(json, "f.json");
  ASSERT_EQ(roles.groups.size(), 1U);
  EXPECT_EQ(roles.groups[0].count, 1U);
  EXPECT_FALSE(roles.groups[0].server);
  EXPECT_EQ(roles.groups[0].lanes, 0) << "the planner chooses";
}

} // namespace
} // namespace reckon
