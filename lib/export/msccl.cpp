// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/log.hpp"
#include "export/export.hpp"
#include "export/msccl_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reckon {
namespace {

/// Who reads these files, and how many steps of a thread block it takes.
struct Runtime {
  const char* name;
  std::size_t steps;
};
constexpr Runtime k_msccl{"microsoft/msccl", 256}, k_rccl{"RCCL", 64};
constexpr std::size_t k_most_xml_elements = 4095; // that each GPU of either may keep
constexpr std::size_t k_most_channels = 32;       // of microsoft/msccl; RCCL has more

/// How much shorter than the longest a part may be: parts begin at multiples of 64 bytes.
constexpr double k_unequal = 0.05;

/// A --part-bytes that cuts the gradient into nearly equal parts, as many for each worker; 0: there
/// is none.
std::uint64_t equal_part_bytes(std::uint64_t gradient_bytes, std::uint64_t workers) {
  constexpr std::uint64_t k_parts = 64; // more become no chunks
  for (std::uint64_t count = std::max<std::uint64_t>(k_parts / workers, 1) * workers; count > 0;
       count -= workers) {
    const std::uint64_t part = ((gradient_bytes + count - 1) / count + 63) / 64 * 64;
    const std::uint64_t before = part * (count - 1);
    if (before < gradient_bytes && static_cast<double>(gradient_bytes - before) >=
                                       (1 - k_unequal) * static_cast<double>(part)) {
      return part;
    }
  }
  return 0;
}

/// Throws unless all parts but a shorter last one are of about one size: MSCCL cuts whatever buffer
/// it is given into equal chunks.
void require_equal_parts(const Plan& plan, std::uint64_t workers) {
  const Parts& parts = plan.parts;
  if (parts.size() == 0) {
    fail(ErrorKind::input, "MSCCL: the plan has no parts");
  }
  const std::vector<std::size_t> order = parts.by_offset();
  const std::uint64_t most = *std::max_element(parts.bytes.begin(), parts.bytes.end());
  std::uint64_t least = most;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    least = std::min(least, parts.bytes[order[i]]);
  }
  if (static_cast<double>(least) < (1 - k_unequal) * static_cast<double>(most)) {
    const std::uint64_t bytes = equal_part_bytes(plan.gradient_bytes, workers);
    const std::string remedy =
        bytes > 0 ? fmt::format("plan with --cutting fused --part-bytes {}", bytes)
                  : fmt::format("{} bytes cannot be cut into so many for each of {} workers",
                                plan.gradient_bytes, workers);
    fail(ErrorKind::input, fmt::format("MSCCL cuts a buffer into equal chunks, and the plan's {} "
                                       "parts are of {} to {} bytes; {}",
                                       parts.size(), least, most, remedy));
  }
}

using Blocks = std::vector<std::vector<msccl::ThreadBlock>>; ///< [rank][lane]

/// Of the plan's parts those that become chunks: as a buffer of any size is cut into as many chunks
/// as a program names, one with fewer of the parts, or of the lanes, is the same all-reduce.
class Chunks {
public:
  Chunks(const Parts& parts, std::uint64_t elements, const Blocks& blocks)
      : m_parts(parts), m_elements(elements), m_blocks(blocks), m_by_owner(parts.by_offset()) {
    const auto owner = [&](std::size_t part) {
      return std::pair(parts.lane[part], parts.server[part]);
    };
    std::stable_sort(m_by_owner.begin(), m_by_owner.end(),
                     [&](std::size_t a, std::size_t b) { return owner(a) < owner(b); });
    m_up_to.resize(blocks.front().size());
    for (std::size_t i = 0; i < m_by_owner.size(); ++i) {
      const bool another = i == 0 || owner(m_by_owner[i - 1]) != owner(m_by_owner[i]);
      for (std::size_t lane = parts.lane[m_by_owner[i]]; lane < m_up_to.size(); ++lane) {
        ++m_up_to[lane].parts;
        m_up_to[lane].owners += another ? 1U : 0U;
      }
    }
    m_chosen = choice();
  }

  /// By part: the number of its chunk, in the order of their offsets; absent: it becomes none.
  [[nodiscard]] std::vector<std::optional<std::size_t>> numbers() const {
    return numbers(m_chosen);
  }
  [[nodiscard]] std::size_t count() const { return m_chosen.count; }
  [[nodiscard]] std::size_t lanes() const { return m_chosen.lanes; } ///< the first ones
  /// Elements that a buffer needs to be used for: those of the gradient, rounded up to chunks.
  [[nodiscard]] std::uint64_t elements() const {
    return (m_elements + count() - 1) / count() * count();
  }
  [[nodiscard]] bool for_rccl() const { return excess(m_chosen, k_rccl).empty(); }

private:
  struct UpTo {
    std::size_t parts = 0, owners = 0; ///< of these lanes: parts, and ranks that sum any, by lane
  };
  struct Choice {
    std::size_t lanes = 0, count = 0;
  };

  /// As many lanes as can be, with the most chunks that divide the elements and that both runtimes
  /// take, else that one takes; the chunks in proportion to what a lane of a rank sums. Where none
  /// divides, the fewest chunks of all lanes, which need the least padding.
  [[nodiscard]] Choice choice() const {
    for (const Runtime& runtime : {k_rccl, k_msccl}) { // what RCCL takes the other takes, too
      for (Choice c{m_up_to.size(), 0}; c.lanes > 0 && m_up_to[c.lanes - 1].owners > 0; --c.lanes) {
        const auto [parts, owners] = m_up_to[c.lanes - 1];
        for (c.count = parts / owners * owners; c.count > 0; c.count -= owners) {
          if (m_elements % c.count == 0 && excess(c, runtime).empty()) {
            return c;
          }
        }
      }
    }
    const Choice least{m_up_to.size(), m_up_to.back().owners};
    const std::string too_much = excess(least, k_msccl);
    if (!too_much.empty()) {
      fail(ErrorKind::input,
           fmt::format("MSCCL: {}; plan with fewer --lanes or --workers", too_much));
    }
    return least;
  }

  [[nodiscard]] std::vector<std::optional<std::size_t>> numbers(const Choice& choice) const {
    std::vector<bool> kept(m_parts.size());
    for (std::size_t i = 0; i < choice.count; ++i) {
      const std::size_t middle = (2 * i + 1) * m_up_to[choice.lanes - 1].parts / (2 * choice.count);
      kept[m_by_owner[middle]] = true;
    }
    std::vector<std::optional<std::size_t>> number(m_parts.size());
    std::size_t next = 0;
    for (const std::size_t part : m_parts.by_offset()) {
      if (kept[part]) {
        number[part] = next++;
      }
    }
    return number;
  }

  /// What the runtime does not take of such a program; empty: it takes it.
  [[nodiscard]] std::string excess(const Choice& choice, const Runtime& runtime) const {
    const std::vector<std::optional<std::size_t>> number = numbers(choice);
    for (const std::vector<msccl::ThreadBlock>& of_rank : m_blocks) {
      std::size_t xml_elements = 1 + m_blocks.size() + choice.lanes;
      for (std::size_t lane = 0; lane < choice.lanes; ++lane) {
        const std::vector<msccl::Step>& all = of_rank[lane].steps;
        const auto steps = static_cast<std::size_t>(
            std::count_if(all.begin(), all.end(),
                          [&](const msccl::Step& step) { return number[step.part].has_value(); }));
        if (steps > runtime.steps) {
          return fmt::format("a thread block would make {} steps, and in {} at most {}", steps,
                             runtime.name, runtime.steps);
        }
        xml_elements += steps;
      }
      if (xml_elements > k_most_xml_elements) {
        return fmt::format("a GPU would keep {} XML elements, and may keep {}", xml_elements,
                           k_most_xml_elements);
      }
    }
    return {};
  }

  const Parts& m_parts;
  std::uint64_t m_elements;
  const Blocks& m_blocks;
  std::vector<std::size_t> m_by_owner; ///< parts by lane and rank that sums, then offset
  std::vector<UpTo> m_up_to;           ///< by lane: with those before it
  Choice m_chosen;
};

/// For whom the program is, and when they use it.
std::string use_of(const Chunks& chunks, std::uint64_t elements, std::size_t lanes) {
  std::string text =
      chunks.for_rccl()
          ? fmt::format("for {} and {}", k_msccl.name, k_rccl.name)
          : fmt::format("for {}; not for {}, whose thread blocks make at most {} steps",
                        k_msccl.name, k_rccl.name, k_rccl.steps);
  if (chunks.lanes() < lanes) {
    text += fmt::format("; with {} of the plan's {} lanes", chunks.lanes(), lanes);
  }
  if (chunks.elements() == elements) {
    return text + fmt::format("; used for {} elements, and fewer that are a multiple of {}",
                              elements, chunks.count());
  }
  return text + fmt::format("; used only for multiples of {} elements: pad the {} to {}",
                            chunks.count(), elements, chunks.elements());
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
  if (schedule.wire) {
    fail(ErrorKind::input, fmt::format("MSCCL: gradients of the plan travel as {}, and MSCCL sends "
                                       "them as they are; plan without --wire",
                                       name_of(*schedule.wire)));
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
  const Blocks blocks = msccl::thread_blocks(schedule);
  require_equal_parts(plan, schedule.ranks.size());
  const std::size_t lanes = blocks.front().size();
  if (lanes > k_most_channels) {
    fail(ErrorKind::input, fmt::format("MSCCL: {} lanes, and NCCL has {} channels; plan with fewer "
                                       "--lanes",
                                       lanes, k_most_channels));
  }
  const std::uint64_t element_bytes = size_of(plan.runs.front().dtype);
  const std::uint64_t elements = plan.runs.front().bytes / element_bytes;
  const Chunks chunks(plan.parts, elements, blocks);
  const std::string use = use_of(chunks, elements, lanes);
  if (!chunks.for_rccl() || chunks.elements() != elements) {
    log(LogLevel::warn, "MSCCL: {}", use);
  }
  const std::vector<std::optional<std::size_t>> chunk = chunks.numbers();
  fmt::memory_buffer text;
  const auto put = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
  };
  // microsoft/msccl uses it below maxBytes, RCCL up to there.
  put("<!-- {} -->\n"
      "<algo name=\"reckon_{}_{}\" proto=\"Simple\" nchannels=\"{}\" nchunksperloop=\"{}\" "
      "ngpus=\"{}\" coll=\"allreduce\" inplace=\"1\" outofplace=\"0\" redop=\"sum\" "
      "minBytes=\"0\" maxBytes=\"{}\">\n",
      use, plan.strategy, blocks.size(), chunks.lanes(), chunks.count(), blocks.size(),
      chunks.elements() * element_bytes + 1);
  for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
    put("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"0\">\n", rank, chunks.count(),
        chunks.count());
    for (std::size_t lane = 0; lane < chunks.lanes(); ++lane) {
      const msccl::ThreadBlock& block = blocks[rank][lane];
      put("    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n", lane, block.send_peer,
          block.receive_peer, lane);
      std::size_t s = 0;
      for (const msccl::Step& step : block.steps) {
        if (const std::optional<std::size_t> c = chunk[step.part]) {
          put("      <step s=\"{}\" type=\"{}\" srcbuf=\"i\" srcoff=\"{}\" dstbuf=\"i\" "
              "dstoff=\"{}\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n",
              s++, msccl::name_of(step.kind), *c, *c);
        }
      }
      put("    </tb>\n");
    }
    put("  </gpu>\n");
  }
  put("</algo>\n");
  return fmt::to_string(text);
}

} // namespace reckon
