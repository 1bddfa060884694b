// SPDX-License-Identifier: Apache-2.0
// Writes one document of each kind into a folder, for the scripts that test the program from
// outside.
#include "core/file.hpp"
#include "support/example_documents.hpp"
#include "support/machine_documents.hpp"

#include <cstdio>
#include <exception>
#include <string>

int main(int argc, char** argv) {
  using namespace reckon;
  if (argc != 2) {
    std::fputs("usage: write_documents FOLDER\n", stderr);
    return 2;
  }
  try {
    const std::string folder = std::string(argv[1]) + "/";
    write_file(folder + "profile.json", canonical_text(test::machine_profile()));
    write_file(folder + "plan.json", canonical_text(test::machine_plan()));
    write_file(folder + "report.json", canonical_text(test::machine_report()));
    write_file(folder + "workload.json", canonical_text(test::example_workload()));
    write_file(folder + "roles.json", canonical_text(test::example_roles()));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "write_documents: %s\n", e.what());
    return 4;
  }
  return 0;
}
