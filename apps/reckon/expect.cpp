// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "core/whole_number.hpp"
#include "described_machine.hpp"
#include "documents/cells.hpp"
#include "documents/document.hpp"
#include "expect/expectation.hpp"
#include "expect/nvlink_domain.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

namespace reckon {
namespace {

struct ExpectArguments {
  DescribedMachine described;
  std::vector<std::string> collectives, machines;
  std::optional<std::uint64_t> gpus;
  std::string requirements, bytes = "8GiB";
  bool json = false;
  ColorMode color = ColorMode::automatic;
};

std::vector<const TestedCollective*> collectives_of(const ExpectArguments& arguments) {
  std::vector<const TestedCollective*> out;
  for (const std::string& name : arguments.collectives) {
    out.push_back(&asked_collective(name, "--collective"));
  }
  for (const TestedCollective& collective : tested_collectives()) {
    const bool rare = collective.name == "scatter" || collective.name == "gather";
    if (arguments.collectives.empty() && !rare) {
      out.push_back(&collective);
    }
  }
  return out;
}

/// The GPUs of one machine, and the machine: the first with a topology, else the first.
CollectiveJob job_of(const Profile& profile, const ExpectArguments& arguments) {
  CollectiveJob job{.machine = profile.machines.front().id, .sharp = arguments.described.sharp};
  for (const MachineGroup& group : profile.machines) {
    if (profile.topology.find(group.id) != nullptr) {
      job.machine = group.id;
      break;
    }
  }
  job.gpus = profile.topology.ids_in(job.machine, ObjectKind::gpu);
  if (arguments.gpus) {
    if (*arguments.gpus > job.gpus.size()) {
      fail(ErrorKind::usage, fmt::format("--gpus-each {}: machine {} has {}", *arguments.gpus,
                                         job.machine, counted(job.gpus.size(), "GPU")));
    }
    job.gpus.resize(*arguments.gpus);
  }
  return job;
}

/// Why there is nothing to expect of a machine of one rank, and no port is known.
std::string alone(const Profile& profile, const CollectiveJob& job) {
  const std::size_t nics = profile.topology.ids_in(job.machine, ObjectKind::nic).size();
  if (job.gpus.empty() && nics == 0) {
    return fmt::format(
        "{} describes neither GPUs nor NICs: give --topology or --profile of a machine "
        "that has some",
        profile.name);
  }
  return fmt::format("{} has {} and no NIC of known rate, so nothing moves: give {}", profile.name,
                     counted(job.gpus.size(), "GPU"),
                     nics > 0 ? "--nic-rate 400Gb/s" : "--nic-rate 1x400Gb/s");
}

/// As asked; else for requirements as many as the profile has, and to see 1, 2 and 4, or one where
/// nothing is known of a network.
std::vector<std::size_t> machines_of(const Profile& profile, const CollectiveJob& job,
                                     const ExpectArguments& arguments) {
  std::vector<std::size_t> out;
  for (const std::string& word : arguments.machines) {
    const auto number = whole_number<std::size_t>(word);
    if (!number || *number < 1 || *number > 65536) {
      fail(ErrorKind::usage,
           fmt::format("--machines {}: must be whole numbers of at least 1, such as 1,2,4", word));
    }
    out.push_back(*number);
  }
  if (!out.empty()) {
    return out;
  }
  if (!arguments.requirements.empty()) {
    return {std::accumulate(
        profile.machines.begin(), profile.machines.end(), std::size_t{0},
        [](std::size_t n, const MachineGroup& machine) { return n + machine.count; })};
  }
  bool port = !profile.select({.test = k_port_bandwidth, .from = job.machine}).empty();
  for (const std::string& nic : profile.topology.ids_in(job.machine, ObjectKind::nic)) {
    port = port || profile.topology.find(nic)->link_bytes_per_second.has_value();
  }
  if (job.ranks() < 2 && !port) {
    fail(ErrorKind::usage, alone(profile, job));
  }
  if (job.gpus.size() > 1) {
    out.push_back(1);
  }
  if (port) {
    out.insert(out.end(), {2, 4});
  }
  return out;
}

struct JobOfDomains {
  Profile profile;
  CollectiveJob job;
};

/// So many machines, where --nvlink-machines of them count as one.
JobOfDomains in_domains(const Profile& profile, const CollectiveJob& job, std::size_t machines,
                        const ExpectArguments& arguments) {
  const std::size_t hosts = arguments.described.domain_of(machines);
  JobOfDomains out{profile, job};
  out.job.machines = machines / hosts;
  if (hosts > 1) {
    out.profile = joined_by_nvlink(profile, job.machine, hosts);
    const std::vector<std::string> gpus = out.profile.topology.ids_in(job.machine, ObjectKind::gpu);
    out.job.gpus.clear();
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      if (i % (gpus.size() / hosts) < job.gpus.size()) {
        out.job.gpus.push_back(gpus[i]);
      }
    }
  }
  return out;
}

int run_expect(const ExpectArguments& arguments) {
  if (!arguments.described.given()) {
    fail(ErrorKind::usage, "expect needs a machine: give --profile, or --topology with the XML of "
                           "hwloc, NCCL or RCCL, or the text of `nvidia-smi topo -m`");
  }
  const Profile profile = read_described(arguments.described);
  const CollectiveJob job = job_of(profile, arguments);
  Expectation expectation{profile.name, {}};
  for (const std::size_t machines : machines_of(profile, job, arguments)) {
    const JobOfDomains domains = in_domains(profile, job, machines, arguments);
    for (Expected& row : expected_of(domains.profile, domains.job, collectives_of(arguments))) {
      row.machines = machines;
      expectation.rows.push_back(std::move(row));
    }
  }
  if (!arguments.requirements.empty()) {
    refuse_overwriting_text(arguments.requirements,
                            {arguments.described.profile, arguments.described.topology},
                            "requirements", "{");
    write_file(arguments.requirements,
               canonical(to_json(requirements_of(
                   expectation, parse_bytes(arguments.bytes, "--message-bytes").count()))));
  }
  write_file("-", arguments.json ? canonical(to_json(expectation))
                                 : render(expectation, style_for(arguments.color, STDOUT_FILENO)));
  return k_exit_ok;
}

} // namespace

void add_expect_command(Arguments& program) {
  auto arguments = std::make_shared<ExpectArguments>();
  Arguments& command = program.command(
      "expect", "Say what collectives should give on a machine: what its links allow, and what "
                "others usually reach of that");
  command.example("reckon expect -p h100-cluster --collective all_reduce");
  command.example("reckon expect --topology topo.txt --gpu H100 --nic-rate 400Gb/s --machines 2");
  add_described_machine(command, &arguments->described,
                        "A profile: of `reckon probe`, or a shipped one's name");
  command
      .option("--collective", &arguments->collectives,
              "Which collective: all_reduce, all_gather, reduce_scatter, broadcast, reduce, "
              "alltoall, sendrecv, scatter or gather. Default: all but the last two")
      .type("NAME")
      .separated_by(',');
  command
      .option("--machines", &arguments->machines,
              "Numbers of machines. Default: 1,2,4, or 1 where no port is known; with "
              "--requirements as "
              "many as the profile has")
      .type("N,N")
      .separated_by(',');
  command.option("--gpus-each", whole_number(&arguments->gpus, 1, 1 << 16),
                 "How many GPUs of each machine. Default: all");
  const Argument requirements =
      command
          .option("--requirements", &arguments->requirements,
                  "Write limits that `check --require` holds an imported log to")
          .type("FILE");
  command
      .option("--message-bytes", &arguments->bytes,
              "Size of the messages that the requirements are for")
      .type("SIZE")
      .shows_default()
      .needs(requirements);
  command.option("--json", &arguments->json, "JSON on standard output: one document");
  command.color(&arguments->color);
  command.action([arguments] { return run_expect(*arguments); });
}

} // namespace reckon
