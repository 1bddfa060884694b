// SPDX-License-Identifier: Apache-2.0
#include "import/collectives.hpp"

#include "core/error.hpp"
#include "import/text_lines.hpp"

#include <fmt/format.h>

#include <cmath>

namespace reckon::import_detail {

const Collective* asked_collective(const ImportOptions& options) {
  return options.collective.empty() ? nullptr
                                    : &reckon::asked_collective(options.collective, "--collective");
}

void name_type(CellKey& key, std::string_view type, const std::string& place) {
  if (type == "float" || type == "float32" || type == "fp32") {
    key.dtype = "fp32";
  } else if (type == "half" || type == "float16" || type == "fp16") {
    key.dtype = "fp16";
  } else if (type == "bfloat16" || type == "bf16") {
    key.dtype = "bf16";
  } else {
    name_word(key, type, place);
  }
}

void name_word(CellKey& key, std::string_view word, const std::string& place) {
  if (!is_plain_word(word) || word.size() > 32) {
    fail(ErrorKind::input,
         fmt::format("{}\"{}\" is no type and no operation; give the tool's output as it is", place,
                     quoted(word)));
  }
  key.test += word.empty() ? "" : fmt::format("_{}", word);
}

void check_rate(const std::string& place, std::string_view what, double printed, double expected,
                double rounding) {
  if (std::abs(printed - expected) > rounding) {
    fail(ErrorKind::input,
         fmt::format(
             "{}{} is {:.6g} GB/s, but size / time gives {:.5g}; give the tool's output as it is",
             place, what, printed, expected));
  }
}

void check_bus_rate(const std::string& place, const Collective& collective, double ranks,
                    double algbw, double busbw) {
  const double factor = collective.bus_factor(ranks);
  if (std::abs(busbw - factor * algbw) > 0.02 + 0.01 * factor * algbw) {
    fail(ErrorKind::input,
         fmt::format("{}busbw / algbw is {:.3f}, but {} of {} ranks has {:.3f}; is this another "
                     "collective (--collective), or is a rank missing, in the list or in --ranks?",
                     place, busbw / algbw, collective.name, ranks, factor));
  }
}

std::pair<std::uint64_t, std::uint64_t> ranks_that(const std::function<bool(double ranks)>& fit) {
  std::uint64_t least = 2, most = 1U << 16U;
  while (least <= most && !fit(static_cast<double>(least))) {
    ++least;
  }
  while (most > least && !fit(static_cast<double>(most))) {
    --most;
  }
  return {least, most};
}

} // namespace reckon::import_detail
