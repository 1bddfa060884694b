// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "export/export.hpp"
#include "export/msccl_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace reckon {
namespace {

constexpr std::size_t k_most_steps = 256;   // of a thread block of MSCCL's interpreter
constexpr std::size_t k_most_channels = 32; // of NCCL

/// How much shorter than the longest a part may be: parts begin at multiples of 64 bytes.
constexpr double k_unequal = 0.05;

/// A --part-bytes that cuts the gradient into nearly equal parts, as many for each worker; 0: there
/// is none.
std::uint64_t equal_part_bytes(std::uint64_t gradient_bytes, std::uint64_t workers) {
  constexpr std::uint64_t k_most_parts = 64; // what a thread block's steps are enough for
  for (std::uint64_t count = k_most_parts / workers * workers; count > 0; count -= workers) {
    const std::uint64_t part = ((gradient_bytes + count - 1) / count + 63) / 64 * 64;
    const std::uint64_t before = part * (count - 1);
    if (before < gradient_bytes && static_cast<double>(gradient_bytes - before) >=
                                       (1 - k_unequal) * static_cast<double>(part)) {
      return part;
    }
  }
  return 0;
}

/// By part: its number among all in the order of their offsets. Throws unless all are of about one
/// size: MSCCL cuts whatever buffer it is given into equal chunks.
std::vector<std::uint64_t> chunk_numbers(const Plan& plan, std::uint64_t workers) {
  const Parts& parts = plan.parts;
  if (parts.size() == 0) {
    fail(ErrorKind::input, "MSCCL: the plan has no parts");
  }
  const auto [least, most] = std::minmax_element(parts.bytes.begin(), parts.bytes.end());
  if (static_cast<double>(*least) < (1 - k_unequal) * static_cast<double>(*most)) {
    const std::uint64_t bytes = equal_part_bytes(plan.gradient_bytes, workers);
    const std::string remedy =
        bytes > 0 ? fmt::format("plan with --cutting fused --part-bytes {}", bytes)
                  : fmt::format("{} bytes cannot be cut into so many for each of {} workers",
                                plan.gradient_bytes, workers);
    fail(ErrorKind::input, fmt::format("MSCCL cuts a buffer into equal chunks, and the plan's {} "
                                       "parts are of {} to {} bytes; {}",
                                       parts.size(), *least, *most, remedy));
  }
  const std::vector<std::size_t> order = parts.by_offset();
  std::vector<std::uint64_t> number(parts.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    number[order[i]] = i;
  }
  return number;
}

void require_all_reduce(const Plan& plan, const Schedule& schedule) {
  if (schedule.collective != Collective::all_reduce) {
    fail(ErrorKind::input,
         fmt::format("MSCCL: the plan is of {}, and this format's is an all-reduce; "
                     "--format goal and --format trace can hold it",
                     name_of(schedule.collective)));
  }
  const auto idle = std::find(schedule.worker.begin(), schedule.worker.end(), false);
  if (idle != schedule.worker.end()) {
    const char* const remedy = plan.options.contains("inside")
                                   ? "plan --inside lets NUMA nodes sum, and this format cannot "
                                     "hold that; --format goal and --format trace can"
                                   : "plan with --strategy ring and --servers 0";
    fail(
        ErrorKind::input,
        fmt::format("MSCCL: rank {} only serves, and in an MSCCL all-reduce every rank has data of "
                    "its own; {}",
                    idle - schedule.worker.begin(), remedy));
  }
  if (schedule.outcome != Outcome::sums) {
    fail(ErrorKind::input,
         "MSCCL: the plan ends with more than sums of floating-point numbers; plan without "
         "--optimizer, --async and --reduction fixed");
  }
  if (plan.runs.size() != 1) {
    fail(ErrorKind::input,
         fmt::format("MSCCL: the gradient has {} runs of different element types, "
                     "and an all-reduce has one type; export a workload of one",
                     plan.runs.size()));
  }
}

} // namespace

std::string msccl_xml(const Plan& plan, const Schedule& schedule) {
  require_all_reduce(plan, schedule);
  // Before the sizes: parts of a scheme that does not fit need not be cut anew.
  const std::vector<std::vector<msccl::ThreadBlock>> blocks = msccl::thread_blocks(schedule);
  const std::vector<std::uint64_t> chunk = chunk_numbers(plan, schedule.ranks.size());
  const std::size_t lanes = blocks.front().size(), chunks = plan.parts.size();
  if (lanes > k_most_channels) {
    fail(ErrorKind::input, fmt::format("MSCCL: {} lanes, and NCCL has {} channels; plan with fewer "
                                       "--lanes",
                                       lanes, k_most_channels));
  }
  fmt::memory_buffer text;
  const auto put = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
  };
  put("<algo name=\"reckon_{}_{}\" proto=\"Simple\" nchannels=\"{}\" nchunksperloop=\"{}\" "
      "ngpus=\"{}\" coll=\"allreduce\" inplace=\"1\" redop=\"sum\">\n",
      plan.strategy, blocks.size(), lanes, chunks, blocks.size());
  for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
    put("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"0\">\n", rank, chunks, chunks);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const msccl::ThreadBlock& block = blocks[rank][lane];
      if (block.steps.size() > k_most_steps) {
        fail(ErrorKind::input,
             fmt::format("MSCCL: lane {} of rank {} makes {} steps, and a thread block at most {}; "
                         "plan with more --lanes or larger --part-bytes",
                         lane, rank, block.steps.size(), k_most_steps));
      }
      put("    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n", lane, block.send_peer,
          block.receive_peer, lane);
      for (std::size_t s = 0; s < block.steps.size(); ++s) {
        const msccl::Step& step = block.steps[s];
        put("      <step s=\"{}\" type=\"{}\" srcbuf=\"i\" srcoff=\"{}\" dstbuf=\"i\" "
            "dstoff=\"{}\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n",
            s, msccl::name_of(step.kind), chunk[step.part], chunk[step.part]);
      }
      put("    </tb>\n");
    }
    put("  </gpu>\n");
  }
  put("</algo>\n");
  return fmt::to_string(text);
}

} // namespace reckon
