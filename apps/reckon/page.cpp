// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "output.hpp"
#include "page/page.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace reckon {
namespace {

struct PageArguments {
  std::vector<std::string> documents;
  std::string measured, output = "-";
};

int run_page(const PageArguments& arguments) {
  if (std::ranges::count(arguments.documents, "-") > 1) {
    fail(ErrorKind::usage, "standard input can be one of the documents, not several");
  }
  std::vector<NamedDocument> documents;
  for (const std::string& name : arguments.documents) {
    documents.push_back({name, read_file_or_shipped(name)});
  }
  const std::string page = page_of(documents, arguments.measured);
  std::vector<std::string> inputs = arguments.documents;
  inputs.push_back(arguments.measured);
  refuse_overwriting_text(arguments.output, inputs, "page", page);
  write_file(arguments.output, page);
  return k_exit_ok;
}

} // namespace

void add_page_command(Arguments& program) {
  auto arguments = std::make_shared<PageArguments>();
  Arguments& command = program.command(
      "page", "Write a page for a browser: one document, a whole loop, or what two differ in");
  command.example("reckon page profile.json plan.json report.json -o page.html");
  command.example("reckon page before.json after.json -o diff.html");
  command
      .option("documents", &arguments->documents,
              "One document, one of each kind that belong together, or two of one kind to compare; "
              "files or names of what ships; - is standard input")
      .required()
      .type("DOCUMENT");
  command
      .option("--measured", &arguments->measured,
              "Measured timeline: the output of `run --trace`, shown beside the plan's")
      .type("FILE");
  command
      .option(
          "-o,--output", &arguments->output,
          "File of the result: the page, which only replaces an older page; - is standard output")
      .type("FILE")
      .shows_default();
  command.footer("The page is one file that needs neither network nor scripts. Exit status: 0 "
                 "written, whatever the verdict; 2 usage or bad input; 4 it cannot be written.");
  command.action([arguments] { return run_page(*arguments); });
}

} // namespace reckon
