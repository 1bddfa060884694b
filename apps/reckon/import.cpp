// SPDX-License-Identifier: Apache-2.0
#include "import/import.hpp"

#include "commands.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "documents/document.hpp"
#include "present/document_text.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

namespace reckon {
namespace {

struct ImportArguments {
  std::vector<std::string> files;
  std::string output, format, machine, collective, merge;
  bool json = false;
};

int run_import(const ImportArguments& arguments) {
  if (!arguments.output.empty()) {
    refuse_overwriting(arguments.output, arguments.files);
  }
  ImportOptions options;
  options.collective = arguments.collective;
  if (!arguments.format.empty()) {
    options.format = import_format_named(arguments.format);
  }
  std::optional<Profile> profile;
  if (!arguments.merge.empty()) {
    profile = read_profile(arguments.merge);
    options.machine = profile->machines.front().id;
    if (arguments.machine.empty() && profile->machines.size() != 1) {
      fail(ErrorKind::usage,
           fmt::format("--merge {}: has {} machines; say with --machine which one was measured",
                       arguments.merge, profile->machines.size()));
    }
  }
  if (!arguments.machine.empty()) {
    options.machine = arguments.machine;
  }
  for (const std::string& file : arguments.files) {
    const Profile added = import_text(read_file(file), file, options);
    if (profile) {
      merge_import(*profile, added);
    } else {
      profile = added;
    }
  }
  // What is written must read: an odd name in an input would show here and not in the next command.
  const Profile checked = profile_from_json(to_json(*profile), "the imported profile");
  const std::string text = canonical_text(checked);
  if (!arguments.output.empty()) {
    write_file(arguments.output, text);
  }
  if (arguments.output == "-") {
    return k_exit_ok;
  }
  if (arguments.json) {
    write_file("-", text);
    return k_exit_ok;
  }
  write_file("-", render(checked, style_for(ColorMode::automatic, STDOUT_FILENO), {}));
  return k_exit_ok;
}

} // namespace

Command add_import_command(CLI::App& app) {
  auto arguments =
      std::make_shared<ImportArguments>(); // CLI11 writes into it, the command reads it
  CLI::App* command = app.add_subcommand(
      "import", "What nvbandwidth, p2pBandwidthLatencyTest, nccl-tests or Intel MLC printed, as a "
                "profile");
  command->add_option("files", arguments->files, "What the tools printed; - is standard input")
      ->required();
  command->add_option("-o,--output", arguments->output, "The profile; - is standard output")
      ->type_name("FILE");
  command
      ->add_option("--format", arguments->format,
                   "Take the files as this instead of looking what they are")
      ->check(CLI::IsMember({"nvbandwidth", "p2p", "nccl-tests", "mlc"}));
  command
      ->add_option("--machine", arguments->machine,
                   "Id of the machine that was measured. Default: m0, or the one of --merge")
      ->type_name("ID");
  command
      ->add_option("--collective", arguments->collective,
                   "What an output of nccl-tests measured (all_reduce, broadcast, ...), where the "
                   "file does not say")
      ->type_name("NAME");
  command->add_option("--merge", arguments->merge, "Add to this profile (it is only read)")
      ->type_name("PROFILE");
  command->add_flag("--json", arguments->json, "The profile on standard output, not its tables");
  return [arguments] { return run_import(*arguments); };
}

} // namespace reckon
