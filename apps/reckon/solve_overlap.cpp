// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "solve_overlap_answers.hpp"
#include "solve_overlap_asked.hpp"
#include "solve_overlap_sweep.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

namespace reckon {

using namespace solve_command;

namespace {

void add_factor(CLI::App& overlap, const char* flag, double& value, double least,
                const char* help) {
  overlap
      .add_option_function<std::string>(
          flag,
          [&value, least, flag](const std::string& text) {
            value = parse_factor(text, flag, least);
          },
          help)
      ->type_name("FACTOR")
      ->default_str("1");
}

/// A sweep is of one all-reduce: what is said of iterations, and given all the same, is an error.
void check_sweep(const CLI::App& overlap) {
  for (const char* const option :
       {"--workload", "--configuration", "--policy", "--batch", "--dtype", "--bound",
        "--dlrm-overlap", "--compute-speed", "--computation-factor", "--communication-factor",
        "--contention", "--cores", "--contention-profile", "--explain", "--timeline"}) {
    if (overlap.count(option) > 0) {
      fail(ErrorKind::usage,
           fmt::format("{}: a sweep is of one all-reduce, of --bytes; leave one of the two out",
                       option));
    }
  }
}

int answer(const OverlapOptions& options) {
  if (options.memory_sweep || options.sm_sweep) {
    const Endpoint endpoint = described_endpoint(options);
    print(sweep_text({endpoint, options.shape, options.sweep_bytes,
                      chunk_bytes_of(options, endpoint), options.memory_sweep},
                     options.json));
    return k_exit_ok;
  }
  if (options.workload.empty()) {
    fail(ErrorKind::usage, "give --workload, or one of --memory-sweep and --sm-sweep");
  }
  if (options.timeline == "-") {
    fail(ErrorKind::usage, "--timeline -: standard output is the answer's; name a file");
  }
  if (!options.timeline.empty()) {
    refuse_overwriting(options.timeline,
                       {options.workload, options.profile, options.contention_profile},
                       "--timeline");
  }
  const OverlapAsked asked(options);
  const OverlapAnswers all = overlap_answers(asked, options.configuration);
  if (!options.timeline.empty()) {
    write_file(options.timeline, timeline_csv(all, asked.workload));
  }
  print(options.json ? canonical(answers_json(all, asked, options.explain))
                     : answers_text(all, asked, options));
  return k_exit_ok;
}

} // namespace

Command add_solve_overlap(CLI::App& solve) {
  auto options = std::make_shared<OverlapOptions>();
  CLI::App* overlap = solve.add_subcommand(
      "overlap", "How much of an iteration's communication an endpoint hides (ACE)");
  overlap->add_option("-m,--workload", options->workload,
                      "With layers: resnet50, gnmt, dlrm, those of ASTRA-sim, or a file");
  overlap->add_option("--profile", options->profile, "With an endpoint")->capture_default_str();
  overlap->add_option("--shape", options->shape, "Nodes LxVxH: local, vertical, horizontal; 4x8x4")
      ->required();
  overlap->add_option("--configuration", options->configuration, "One of the profile's, or all")
      ->capture_default_str();
  overlap->add_option("--policy", options->policy, "Which collective first: lifo, fifo, priority")
      ->capture_default_str();
  overlap->add_option("--chunk", options->chunk, "What nothing interrupts; default: the profile's");
  overlap->add_option("--batch", options->batch, "Samples of a worker; default: the workload's");
  overlap->add_option("--dtype", options->dtype,
                      "Of gradients and activations: fp32, fp16, bf16; default: the workload's");
  overlap
      ->add_option(
          "--bound", options->bound,
          "What holds up layers that say seconds: memory or compute, whose share stretches "
          "them (49); default: neither")
      ->type_name("PART");
  overlap->add_flag("--dlrm-overlap", options->aside,
                    "What is exchanged is computed beside the rest, an iteration ahead");
  add_factor(*overlap, "--compute-speed", options->compute_speed, 1e-6,
             "As if it computed so many times as fast");
  add_factor(*overlap, "--computation-factor", options->computation_factor, 1,
             "Computation takes so many times longer beside communication");
  add_factor(*overlap, "--communication-factor", options->communication_factor, 1,
             "Communication takes so many times longer beside computation");
  overlap
      ->add_option("--contention", options->contention,
                   "The factors that the profile has beside this computation, e.g. gemm_256")
      ->type_name("WORK");
  overlap
      ->add_option("--cores", options->cores,
                   "With --contention: computation and communication on processors of their own "
                   "(dedicated), or all on the same (shared); without an endpoint both")
      ->capture_default_str();
  overlap
      ->add_option("--contention-profile", options->contention_profile,
                   "With --contention: whose factors. Default: --profile's own")
      ->type_name("PROFILE");
  overlap->add_flag("--explain", options->explain, "Layer by layer");
  overlap->add_option("--timeline", options->timeline,
                      "Writes every stretch to this CSV file; 0 s is where the "
                      "iteration that repeats begins");
  auto* memory = overlap->add_flag("--memory-sweep", options->memory_sweep,
                                   "What a node sends over the memory's bandwidth, instead");
  overlap->add_flag("--sm-sweep", options->sm_sweep, "The same over SMs")->excludes(memory);
  overlap->add_option("--bytes", options->sweep_bytes, "All-reduce of a sweep")
      ->capture_default_str();
  overlap->add_flag("--json", options->json, "One JSON object on standard output");
  overlap->footer("Equations 49 to 53 of docs/equations.md. With --json, times are in seconds and "
                  "bandwidths in bytes per second.");
  return [options, overlap] {
    if (overlap->count("--bytes") > 0 && !options->memory_sweep && !options->sm_sweep) {
      fail(ErrorKind::usage,
           fmt::format("--bytes {}: is of a sweep; add --memory-sweep or --sm-sweep, or leave it "
                       "out: an iteration sends what its --workload says",
                       options->sweep_bytes));
    }
    if (options->memory_sweep || options->sm_sweep) {
      check_sweep(*overlap);
    }
    if (overlap->count("--cores") > 0 && options->contention.empty()) {
      fail(ErrorKind::usage, "--cores: says whose factors --contention takes; give both");
    }
    if (overlap->count("--batch") > 0) {
      static_cast<void>(count_of(options->batch, "--batch"));
    }
    return answer(*options);
  };
}

} // namespace reckon
