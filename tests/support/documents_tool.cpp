// SPDX-License-Identifier: Apache-2.0
//
// What the schema test (tests/unit/documents/check_schemas.py) asks of the C++ code:
//   documents_tool examples          one line an example document: its canonical text as one JSON
//   string documents_tool keys              reads one document a line; one line each: the keys that
//   the reader knows
//                                    in every object of it, as {"/pointer": ["key", ...]}
//   documents_tool verdicts          reads one document a line; one line each: "ok" or the reader's
//   message

#include "core/error.hpp"
#include "core/json.hpp"
#include "support/example_documents.hpp"

#include <iostream>
#include <string>

namespace reckon {
namespace {

std::string verdict(const Json& json) {
  try {
    static_cast<void>(document_from_json(json, "f.json"));
    return "ok";
  } catch (const Error& e) {
    return e.kind() == ErrorKind::input ? e.what() : std::string("not an input error: ") + e.what();
  }
}

/// A key that is near to no other, so that the message lists the known ones.
constexpr const char* k_foreign = "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq";
constexpr std::string_view k_list = "unknown key; known here: ";

void collect_keys(const Json& whole, const Json::json_pointer& at, Json& keys) {
  const Json& value = whole.at(at);
  if (value.is_object()) {
    Json changed = whole;
    changed.at(at)[k_foreign] = "";
    const std::string message = verdict(changed);
    if (const std::size_t list = message.find(k_list); list != std::string::npos) {
      Json& known = keys[at.to_string()];
      std::string rest = message.substr(list + k_list.size());
      for (std::size_t comma = 0; comma != std::string::npos;) {
        comma = rest.find(", ");
        known.push_back(rest.substr(0, comma));
        rest = comma == std::string::npos ? "" : rest.substr(comma + 2);
      }
    }
    for (const auto& [key, member] : value.items()) {
      collect_keys(whole, at / key, keys);
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      collect_keys(whole, at / i, keys);
    }
  }
}

int work(const std::string& task) {
  if (task == "examples") {
    for (const std::string& text :
         {canonical_text(test::example_profile()), canonical_text(test::example_workload()),
          canonical_text(test::example_roles()), canonical_text(test::example_plan()),
          canonical_text(test::example_report())}) {
      std::cout << Json(text).dump() << '\n';
    }
    return 0;
  }
  std::string line;
  while (std::getline(std::cin, line)) {
    const Json json = Json::parse(line);
    if (task == "keys") {
      Json keys = Json::object();
      collect_keys(json, Json::json_pointer(), keys);
      std::cout << keys.dump() << '\n';
    } else {
      std::cout << verdict(json) << '\n';
    }
  }
  return 0;
}

} // namespace
} // namespace reckon

int main(int argc, char** argv) {
  return reckon::work(argc > 1 ? argv[1] : "");
}
