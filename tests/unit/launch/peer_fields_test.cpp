// SPDX-License-Identifier: Apache-2.0
#include "launch/peer_fields.hpp"

#include "launch/sockets.hpp"
#include "support/every_peer_field.hpp"
#include "support/local_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <thread>

namespace reckon {
namespace {

using Everything = test::EveryPeerField;

TEST(PeerFields, AreReadAsTheyWereWritten) {
  Everything sent{true,
                  std::numeric_limits<std::int64_t>::min(),
                  std::numeric_limits<std::uint64_t>::max(),
                  0.1,
                  "a \"word\"\n\xc3\xa9",
                  {1, 0},
                  {"", "b"}};
  Everything got;
  got.counts = {7};
  fields_from_text(got.fields(), fields_to_text(sent.fields()), "rank 1");
  EXPECT_EQ(got, sent);
}

TEST(PeerFields, TakeTextThatIsNoUtf8) {
  Everything sent, got;
  sent.text = "host\xff";
  fields_from_text(got.fields(), fields_to_text(sent.fields()), "rank 1");
  EXPECT_EQ(got.text, "host\xef\xbf\xbd");
}

struct Refused {
  const char *field, *value; ///< instead of its own; null: without the field
  const char* words;
};
class PeerFieldsRefuse : public testing::TestWithParam<Refused> {};

TEST_P(PeerFieldsRefuse, NamingTheSenderAndTheField) {
  const auto& [field, value, words] = GetParam();
  std::string text =
      R"({"yes":true,"whole":1,"count":1,"number":1,"text":"","counts":[],"texts":[])";
  const std::size_t at = text.find(std::string("\"") + field + "\":");
  if (at == std::string::npos) {
    text += std::string(",\"") + field + "\":" + value;
  } else {
    const std::size_t colon = text.find(':', at);
    text.replace(colon + 1, std::min(text.find(',', colon), text.size()) - colon - 1,
                 value != nullptr ? value : "0");
    text.replace(at, value != nullptr ? 0 : 2, value != nullptr ? "" : "\"_");
  }
  Everything got;
  try {
    fields_from_text(got.fields(), text + "}", "rank 3");
    FAIL() << "no error";
  } catch (const PeerError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::operation);
    EXPECT_EQ(std::string(e.what()),
              std::string("rank 3 sent a message that cannot be read: ") + words);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fields, PeerFieldsRefuse,
    testing::Values(Refused{"whole", nullptr, "'whole' is missing"},
                    Refused{"yes", "1", "'yes' is 1"}, Refused{"whole", "1.5", "'whole' is 1.5"},
                    Refused{"whole", "9223372036854775808", "'whole' is 9223372036854775808"},
                    Refused{"count", "-1", "'count' is -1"},
                    Refused{"number", "null", "'number' is null"},
                    Refused{"text", "[]", "'text' is []"},
                    Refused{"counts", "[-1]", "'counts' is [-1]"},
                    Refused{"texts", "[0]", "'texts' is [0]"},
                    Refused{"more", "0", "'more' is not known here"}));

TEST(PeerFields, WhatIsRefusedIsShownInOneLineHoweverItWasSent) {
  // 100,000 levels of lists exhaust the stack of what writes them; names may hold a terminal's
  // commands.
  constexpr std::size_t k_levels = 100'000;
  const std::string deep = std::string(k_levels, '[') + std::string(k_levels, ']');
  for (const auto& [text, words] : std::map<std::string, std::string>{
           {R"({"yes":)" + deep + "}", "it is no JSON object"},
           {R"({"yes":true,"whole":1,"count":1,"number":1,"text":"","counts":[],"texts":[],)"
            R"("\u001b[2J":1})",
            R"('\u001b[2J' is not known here)"}}) {
    Everything got;
    try {
      fields_from_text(got.fields(), text, "rank 3");
      ADD_FAILURE() << "no error";
    } catch (const PeerError& e) {
      EXPECT_EQ(std::string(e.what()), "rank 3 sent a message that cannot be read: " + words);
    }
  }
}

TEST(PeerFields, NonsenseNamesTheRankThatSaidItAtEveryRank) {
  for (const std::string nonsense : {"", "{", "[1, 2]", "null", "\xff"}) {
    Listener listener = listen_locally();
    std::string error;
    std::jthread other([&] {
      Rendezvous r(support::job(1, 2, listener.port), "plan", support::k_limit);
      static_cast<void>(r.all_gather(nonsense, support::k_limit));
    });
    Rendezvous r(support::job(0, 2, listener.port), "plan", support::k_limit,
                 std::move(listener.socket));
    try {
      static_cast<void>(gather(r, Everything(), support::k_limit));
    } catch (const PeerError& e) {
      error = e.what();
    }
    EXPECT_EQ(error, "rank 1 sent a message that cannot be read: it is no JSON object");
  }
}

} // namespace
} // namespace reckon
