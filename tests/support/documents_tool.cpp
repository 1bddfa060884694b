// SPDX-License-Identifier: Apache-2.0
//
// What the schema test (tests/unit/documents/check_schemas.py) asks of the C++ code:
//   documents_tool examples   one line an example document: its canonical text as one JSON string
//   documents_tool verdicts   reads one document a line; one line each: "ok" or the reader's
//   message

#include "core/error.hpp"
#include "core/json.hpp"
#include "documents/json.hpp"
#include "support/example_documents.hpp"

#include <iostream>
#include <string>

namespace reckon {
namespace {

std::string verdict(const Json& json) {
  try {
    if (json.is_object() && json.value("schema", Json()) == "reckon/requirements") {
      static_cast<void>(requirements_from_json(json, "f.json"));
    } else {
      static_cast<void>(document_from_json(json, "f.json"));
    }
    return "ok";
  } catch (const Error& e) {
    return e.kind() == ErrorKind::input ? e.what() : std::string("not an input error: ") + e.what();
  }
}

int work(const std::string& task) {
  if (task == "examples") {
    for (const std::string& text :
         {canonical_text(test::example_profile()), canonical_text(test::example_workload()),
          canonical_text(test::example_roles()), canonical_text(test::example_plan()),
          canonical_text(test::example_report()),
          canonical(to_json(test::example_requirements()))}) {
      std::cout << Json(text).dump() << '\n';
    }
    return 0;
  }
  std::string line;
  while (std::getline(std::cin, line)) {
    const Json json = Json::parse(line);
    std::cout << verdict(json) << '\n';
  }
  return 0;
}

} // namespace
} // namespace reckon

int main(int argc, char** argv) {
  return reckon::work(argc > 1 ? argv[1] : "");
}
