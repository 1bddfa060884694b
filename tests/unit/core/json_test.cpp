// SPDX-License-Identifier: Apache-2.0
#include "core/json.hpp"

#include "core/error.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

namespace reckon {
namespace {

using namespace testing;

std::string message(const std::function<void()>& attempt, ErrorKind kind = ErrorKind::input) {
  try {
    attempt();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  return "ok";
}

std::string parse_error(std::string_view text) {
  return message([&] { static_cast<void>(parse_json(text, "f.json")); });
}

TEST(ParseJson, ReadsEveryKindOfValue) {
  const Json json = parse_json(
      R"( {"a": [1, -2, 3.5, true, false, null, "x\u00e4\n", {}, []], "b": {"c": 18446744073709551615}} )",
      "f");
  EXPECT_EQ(json.dump(),
            R"({"a":[1,-2,3.5,true,false,null,"xä\n",{},[]],"b":{"c":18446744073709551615}})");
  EXPECT_EQ(parse_json("7", "f"), Json(7));
}

TEST(ParseJson, NamesLineAndColumn) {
  EXPECT_EQ(parse_error(""), "f.json:1:1: not valid JSON (the file ends too early): syntax error "
                             "while parsing value - unexpected end of "
                             "input; expected '[', '{', or a literal");
  EXPECT_THAT(parse_error("{\n  \"a\": 1,\n}"), test::Says("f.json:3:1"));
  EXPECT_THAT(parse_error("{\"a\": 1"), test::Says("f.json:1:8"));
  EXPECT_THAT(parse_error("{\"a\": NaN}"), test::Says("f.json:1:7"));
  EXPECT_THAT(parse_error("{\"a\": Infinity}"), test::Says("f.json:1:7"));
  EXPECT_THAT(parse_error("[1] 2"), test::Says("expected"));
  for (const char* text :
       {"// c\n[]", "/* c */ []", "[01]", "[1,]", "{a: 1}", "{'a': 1}", "[+1]", "[.5]", "[1.]",
        "tru", "[\"\xff\"]", "[\"a\nb\"]", "[\"\\x\"]", "[\"\\ud800\"]"}) {
    EXPECT_THAT(parse_error(text), HasSubstr(": not valid JSON")) << text;
  }
}

TEST(ParseJson, RefusesNumbersBeyondDoubles) {
  EXPECT_EQ(parse_error("[1e400]"), "f.json: not valid JSON: number overflow parsing '1e400'");
}

TEST(ParseJson, RefusesAKeyThatOccursTwiceAndSaysWhere) {
  EXPECT_EQ(parse_error(R"({"a": 1, "a": 1})"),
            "f.json: the key \"a\" occurs twice in one object; keep one");
  EXPECT_EQ(parse_error(R"({"a": {"x/y": [{"k": 1}, {"k": 1, "l": [2], "k": 2}]}})"),
            "f.json: /a/x~1y/1: the key \"k\" occurs twice in one object; keep one");
  EXPECT_EQ(parse_error(R"([[], [0, {"\u001b": 1, "\u001b": 1}]])"),
            "f.json: /1/1: the key \"\\u001b\" occurs twice in one object; keep one");
  EXPECT_EQ(parse_error(R"({"a": {"b": 1}, "c": {"b": 1}, "b": [{"b": 1}, {"b": 1}]})"), "ok");
}

TEST(ParseJson, RefusesWhatIsNestedTooDeeply) {
  EXPECT_EQ(parse_error(std::string(64, '[') + std::string(64, ']')), "ok");
  const std::string deep = parse_error(std::string(100000, '['));
  EXPECT_THAT(deep, StartsWith("f.json: /0/0/"));
  EXPECT_THAT(deep, test::Says("64 levels"));
  std::string objects;
  for (int i = 0; i < 65; ++i) {
    objects += "{\"a\":";
  }
  EXPECT_THAT(parse_error(objects), HasSubstr("/a/a: nested deeper"));
}

TEST(ParseJson, AnErrorIsOneShortLineWhateverTheFileHolds) {
  const std::string hostile = parse_error("[\"\x1b[31m" + std::string(10000, 'y'));
  EXPECT_EQ(hostile.find('\x1b'), std::string::npos);
  EXPECT_LT(hostile.size(), 300U);
  EXPECT_EQ(parse_error("[x\n\n\n").find('\n'), std::string::npos);
}

TEST(Canonical, SortsKeysAndKeepsArraysOfScalarsAndOfSuchArraysOnOneLine) {
  const Json json = Json::parse(
      R"({"b": [1, 2.5, "x", null, true], "a": {"d": [], "c": {}}, "e": [[1, 2], [3]], "f": [{}]})");
  EXPECT_EQ(canonical(json), R"({
  "a": {
    "c": {},
    "d": []
  },
  "b": [1, 2.5, "x", null, true],
  "e": [[1, 2], [3]],
  "f": [
    {}
  ]
}
)");
}

TEST(Canonical, EveryNumberHasOneSpelling) {
  EXPECT_EQ(canonical(Json(1.0)), "1\n");
  EXPECT_EQ(canonical(Json(1)), "1\n");
  EXPECT_EQ(canonical(Json(1U)), "1\n");
  EXPECT_EQ(canonical(Json(-0.0)), "0\n");
  EXPECT_EQ(canonical(Json(-3)), "-3\n");
  EXPECT_EQ(canonical(Json(0.1)), "0.1\n");
  EXPECT_EQ(canonical(Json(1e21)), "1e+21\n");
  EXPECT_EQ(canonical(Json(std::numeric_limits<std::uint64_t>::max())), "18446744073709551615\n");
  EXPECT_EQ(canonical(Json(std::numeric_limits<std::int64_t>::min())), "-9223372036854775808\n");
}

TEST(Canonical, NumbersReadBackTheSame) {
  for (const double x :
       {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 12.5e9, 123456789.123456789, 1e-7}) {
    EXPECT_EQ(parse_json(canonical(Json(x)), "f").get<double>(), x);
  }
}

TEST(Canonical, StringsAreEscapedAndReadBackTheSame) {
  for (const char* text : {"", "plain", "quote \" backslash \\ slash /", "tab\tnewline\n\x01",
                           "ümläut 日本", "\x7f"}) {
    EXPECT_EQ(parse_json(canonical(Json(text)), "f").get<std::string>(), text);
  }
  EXPECT_EQ(canonical(Json("a\"\\/\n\x1b")), "\"a\\\"\\\\/\\n\\u001b\"\n");
  EXPECT_EQ(canonical(Json{{"k\n", 1}}), "{\n  \"k\\n\": 1\n}\n");
}

TEST(Canonical, WhatIsNotUtf8IsReplacedAndNotRefused) {
  EXPECT_EQ(canonical(Json("caf\xe9")), "\"caf\xEF\xBF\xBD\"\n");
}

TEST(Canonical, RefusesNumbersThatAreNotFinite) {
  for (const double x : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(message(
                  [&] {
                    static_cast<void>(canonical(Json{{"a", {x}}}));
                  },
                  ErrorKind::internal),
              "a document would hold a number that is not finite");
    EXPECT_TRUE(finite_or_null(x).is_null());
  }
  EXPECT_EQ(finite_or_null(1.5), Json(1.5));
}

/// What is said of m_json by an expression of its view `v`.
#define EXPECT_SAYS(text, ...)                                                                     \
  EXPECT_EQ(of([&](const JsonView& v) { static_cast<void>(__VA_ARGS__); }), text)

class View : public ::testing::Test {
protected:
  /// What `attempt` says of the view of m_json.
  [[nodiscard]] std::string of(const std::function<void(const JsonView&)>& attempt) const {
    return message([&] { attempt(JsonView(m_json, "f.json")); });
  }
  Json m_json =
      Json::parse(R"({"s": "text", "n": 1.5, "i": 7, "neg": -1, "zero": 0, "b": true, "null": null,
                                "list": [1, 2, "x"], "a/b~c": {"d": [{"e": 1}]}, "big": 9007199254740992,
                                "bigger": 9007199254740993, "float": 3.0, "empty": ""})");
};

TEST_F(View, ReadsWhatIsThere) {
  const JsonView v(m_json, "f.json");
  EXPECT_EQ(v.at("s").string(), "text");
  EXPECT_EQ(v.at("s").name(), "text");
  EXPECT_EQ(v.at("s").one_of({"x", "text"}), "text");
  EXPECT_EQ(v.at("n").number(), 1.5);
  EXPECT_EQ(v.at("neg").number(), -1);
  EXPECT_EQ(v.at("zero").non_negative(), 0);
  EXPECT_EQ(v.at("n").positive(), 1.5);
  EXPECT_EQ(v.at("i").count(), 7U);
  EXPECT_EQ(v.at("float").count(), 3U);
  EXPECT_EQ(v.at("big").count(), 9007199254740992U);
  EXPECT_EQ(v.at("i").integer(7, 7), 7);
  EXPECT_EQ(v.at("neg").integer(-1, 0), -1);
  EXPECT_TRUE(v.at("b").boolean());
  EXPECT_FALSE(v.find("nothing"));
  EXPECT_FALSE(v.find("null"));
  EXPECT_EQ(v.find("i")->count(), 7U);
  EXPECT_EQ(v.members().size(), m_json.size());
  EXPECT_EQ(v.at("a/b~c").at("d").elements().at(0).at("e").pointer(), "/a~1b~0c/d/0/e");
  EXPECT_EQ(v.pointer(), "/");
  EXPECT_EQ(v.file(), "f.json");
  v.at("a/b~c").only({"d"});
}

TEST_F(View, EveryWrongKindIsNamedWithItsPlace) {
  EXPECT_SAYS("f.json: the key \"none\" is missing; add it", v.at("none"));
  EXPECT_SAYS("f.json: /s: must be an object, is \"text\"", v.at("s").at("x"));
  EXPECT_SAYS("f.json: /s: must be an object, is \"text\"", v.at("s").find("x"));
  EXPECT_SAYS("f.json: /s: must be an object, is \"text\"", v.at("s").members());
  EXPECT_SAYS("f.json: /list: must be an object, is [1,2,\"x\"]", v.at("list").only({}));
  EXPECT_SAYS("f.json: /s: must be an array, is \"text\"", v.at("s").elements());
  EXPECT_SAYS("f.json: /n: must be a string, is 1.5", v.at("n").string());
  EXPECT_SAYS("f.json: /i: must be true or false, is 7", v.at("i").boolean());
  EXPECT_SAYS("f.json: /b: must be a number, is true", v.at("b").number());
  EXPECT_SAYS("f.json: /null: must be a number, is null", v.at("null").number());
  EXPECT_SAYS("f.json: /list/2: must be a finite number, is \"x\"", v.at("list").numbers());
  EXPECT_SAYS("f.json: /list/2: must be a number, is \"x\"", v.at("list").counts());
  EXPECT_SAYS("f.json: /s: must be an array of numbers, is \"text\"", v.at("s").numbers());
  EXPECT_SAYS("f.json: /s: must be an array of whole numbers, is \"text\"", v.at("s").counts());
}

TEST_F(View, EveryWrongValueIsNamedWithItsPlace) {
  EXPECT_SAYS("f.json: /neg: must not be negative, is -1", v.at("neg").non_negative());
  EXPECT_SAYS("f.json: /zero: must be greater than 0, is 0", v.at("zero").positive());
  for (const char* key : {"neg", "n", "bigger"}) {
    EXPECT_SAYS(std::string("f.json: /") + key + ": must be a whole number from 0 to 2^53, is " +
                    m_json[key].dump(),
                v.at(key).count());
  }
  EXPECT_SAYS("f.json: /i: must be a whole number from 0 to 6, is 7", v.at("i").integer(0, 6));
  EXPECT_SAYS("f.json: /n: must be a whole number from 0 to 6, is 1.5", v.at("n").integer(0, 6));
  EXPECT_SAYS("f.json: /s: is \"text\"; must be one of a, b", v.at("s").one_of({"a", "b"}));
  EXPECT_SAYS("f.json: /empty: must be a name: 1 to 256 characters, no control characters",
              v.at("empty").name());
  m_json["empty"] = std::string(257, 'x');
  EXPECT_SAYS("f.json: /empty: must be a name: 1 to 256 characters, no control characters",
              v.at("empty").name());
  m_json["empty"] = "a\tb";
  EXPECT_SAYS("f.json: /empty: must be a name: 1 to 256 characters, no control characters",
              v.at("empty").name());
}

TEST_F(View, CountsRefuseWhatCountRefuses) {
  for (const char* bad : {"[1, -1]", "[1, 0.5]", "[1, 9007199254740993]", "[1, 1e300]"}) {
    m_json = Json::parse(bad);
    EXPECT_THAT(of([](const JsonView& v) { static_cast<void>(v.counts()); }),
                test::Says("f.json: /1"));
  }
  m_json = Json::parse("[0, 9007199254740992, 4.0]");
  EXPECT_THAT(JsonView(m_json, "f").counts(), ElementsAre(0, 9007199254740992, 4));
}

TEST_F(View, AnUnknownKeyIsNamedWithTheNearestKnownOne) {
  EXPECT_SAYS("f.json: /a~1b~0c/d: unknown key; known here: dd", v.at("a/b~c").only({"dd"}));
  m_json = Json{{"forwrd_seconds", 1}};
  EXPECT_SAYS("f.json: /forwrd_seconds: unknown key; did you mean \"forward_seconds\"?",
              v.only({"name", "forward_seconds"}));
}

TEST_F(View, LongAndHostileValuesAreShownShort) {
  m_json = Json{{"k\n", std::string(500, 'y')}};
  EXPECT_SAYS("f.json: /k\\u000a: must be a number, is \"" + std::string(56, 'y') + "...",
              v.at("k\n").number());
  m_json = Json("\x1b[31m");
  EXPECT_SAYS("f.json: must be a number, is \"\\u001b[31m\"", v.number());
  // 'ü' has two bytes; the cut never falls between them
  for (int pad = 0; pad < 2; ++pad) {
    std::string text(static_cast<std::size_t>(pad), 'x');
    for (int i = 0; i < 100; ++i) {
      text += "ü";
    }
    m_json = Json(text);
    const std::string said = of([](const JsonView& v) { static_cast<void>(v.number()); });
    EXPECT_NO_THROW(static_cast<void>(Json(said).dump())); // throws on what is not UTF-8
  }
}

TEST(DidYouMean, FindsSlipsAndBeginningsAndNothingElse) {
  const std::vector<std::string> names{"resnet50", "vgg16", "bert-large", "memory_bytes", "to"};
  EXPECT_EQ(did_you_mean("resnet", names), "resnet50");
  EXPECT_EQ(did_you_mean("resent50", names), "resnet50");
  EXPECT_EQ(did_you_mean("bertlarge", names), "bert-large");
  EXPECT_EQ(did_you_mean("memory", names), "memory_bytes");
  EXPECT_EQ(did_you_mean("vgg19", names), "vgg16");
  EXPECT_EQ(did_you_mean("alexnet", names), "");
  EXPECT_EQ(did_you_mean("x", names), "");
  EXPECT_EQ(did_you_mean("ab", names), "");
  EXPECT_EQ(did_you_mean("", names), "");
  EXPECT_EQ(did_you_mean("resnet", {}), "");
}

} // namespace
} // namespace reckon
