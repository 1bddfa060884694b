// SPDX-License-Identifier: Apache-2.0
//
// What a reader does with a file that was cut off or garbled: an input error, or a valid document;
// nothing else.
#include "core/error.hpp"
#include "core/json.hpp"
#include "documents/json.hpp"
#include "support/example_documents.hpp"
#include "support/random_cases.hpp"
#include "support/random_documents.hpp"

#include <gtest/gtest.h>

#include <array>
#include <iostream>

namespace reckon {
namespace {

constexpr std::uint64_t k_seed = 20240612;

std::vector<std::string> texts_of_examples() {
  return {canonical_text(test::example_profile()), canonical_text(test::example_workload()),
          canonical_text(test::example_roles()), canonical_text(test::example_plan()),
          canonical_text(test::example_report())};
}

enum class Outcome { valid, input_error, other };

/// Reads `text`. A document that is admitted must come back from its own canonical text.
Outcome read(const std::string& text) {
  try {
    const Document document = document_from_json(parse_json(text, "f"), "f");
    const std::string written = canonical_text(document);
    return canonical_text(document_from_json(parse_json(written, "f"), "f")) == written
               ? Outcome::valid
               : Outcome::other;
  } catch (const Error& e) {
    const std::string message = e.what();
    const bool one_line = message.find('\n') == std::string::npos;
    return e.kind() == ErrorKind::input && message.starts_with("f:") && one_line
               ? Outcome::input_error
               : Outcome::other;
  } catch (const std::exception& e) {
    std::cout << "not an Error: " << e.what() << '\n';
    return Outcome::other;
  }
}

TEST(ACutOffDocument, IsAnInputErrorAtEveryByte) {
  for (const std::string& text : texts_of_examples()) {
    ASSERT_EQ(read(text), Outcome::valid);
    // Only the final newline may be missing.
    ASSERT_EQ(read(text.substr(0, text.size() - 1)), Outcome::valid);
    for (std::size_t n = 0; n + 1 < text.size(); ++n) {
      ASSERT_EQ(read(text.substr(0, n)), Outcome::input_error) << text.substr(0, n);
    }
  }
}

TEST(AGarbledDocument, IsAnInputErrorOrADocument) {
  int valid = 0;
  int refused = 0;
  for (const std::string& text : texts_of_examples()) {
    test::for_cases(k_seed, 1500, [&](test::Random& random) {
      std::string changed = text;
      const std::size_t at = random() % changed.size();
      const char byte = random() % 4 == 0 ? static_cast<char>(random() % 256)
                                          : "0-9.e\"{}[],:nt\\"[random() % 15];
      switch (random() % 4) {
      case 0:
        changed[at] = byte;
        break;
      case 1:
        changed.insert(at, 1, byte);
        break;
      case 2:
        changed.erase(at, 1 + random() % 8);
        break;
      default: // a piece of it again, elsewhere
        changed.insert(at, text.substr(random() % text.size(), random() % 40));
        break;
      }
      const Outcome outcome = read(changed);
      ASSERT_NE(outcome, Outcome::other) << changed;
      ++(outcome == Outcome::valid ? valid : refused);
    });
  }
  std::cout << valid << " still valid, " << refused << " refused\n";
  EXPECT_GT(valid, 100); // else the damage is too crude to reach the validation
  EXPECT_GT(refused, 1000);
}

/// Every place in a document.
void collect(const Json& value, const Json::json_pointer& at,
             std::vector<Json::json_pointer>& places) {
  places.push_back(at);
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      collect(member, at / key, places);
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      collect(value[i], at / i, places);
    }
  }
}

template <class T>
void expect_survives_changes(T (*random_document)(std::mt19937_64&)) {
  const std::array<Json, 14> strange{nullptr,          true,         0,  -1,   1,     0.5,
                                     9007199254740993, 1e300,        "", "m0", "x\n", {1},
                                     {{"id", "x"}},    Json::array()};
  test::for_cases(k_seed, 400, [&](test::Random& random) {
    Json json = to_json(random_document(random));
    std::vector<Json::json_pointer> places;
    collect(json, Json::json_pointer(), places);
    const Json::json_pointer& at = places[random() % places.size()];
    const Json::json_pointer& from = places[random() % places.size()];
    if (random() % 3 == 0) {
      const Json other = json.at(from); // a copy: it may contain `at`
      json.at(at) = other;
    } else {
      json.at(at) = strange[random() % strange.size()];
    }
    ASSERT_NE(read(canonical(json)), Outcome::other) << canonical(json);
  });
}

TEST(AChangedValue, IsAnInputErrorOrADocument) {
  expect_survives_changes(test::random_profile);
  expect_survives_changes(test::random_workload);
  expect_survives_changes(test::random_roles);
  expect_survives_changes(test::random_plan);
  expect_survives_changes(test::random_report);
}

} // namespace
} // namespace reckon
