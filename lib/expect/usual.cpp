// SPDX-License-Identifier: Apache-2.0
#include "expect/usual.hpp"

#include "core/file.hpp"
#include "core/json.hpp"
#include "documents/document.hpp"

#include <algorithm>
#include <vector>

namespace reckon {
namespace {

const std::vector<UsualShare>& usual_shares() {
  static const std::vector<UsualShare> shares = [] {
    std::vector<UsualShare> read;
    const std::string file = shipped_file("usual/collectives.json");
    const Json json = parse_json(read_file(file), file);
    for (const JsonView& view : JsonView(json, file).at("shares").elements()) {
      view.only(
          {"way", "through", "gpus", "gpu_bytes_per_second", "low", "high", "measured", "source"});
      UsualShare& share = read.emplace_back();
      share = {view.at("way").name(),        view.at("through").name(),
               view.at("low").positive(),    view.at("high").positive(),
               view.at("measured").string(), view.at("source").string()};
      for (const auto& [key, range] :
           {std::pair("gpus", &share.gpus),
            std::pair("gpu_bytes_per_second", &share.bytes_per_second)}) {
        if (const std::optional<JsonView> ends = view.find(key)) {
          const std::vector<double> numbers = ends->numbers();
          if (numbers.size() != 2) {
            ends->fail("must be two numbers: from, to");
          }
          *range = {numbers[0], numbers[1]};
        }
      }
      if (share.high > 1 || share.low > share.high) {
        view.fail("low must not be above high, nor high above 1");
      }
    }
    return read;
  }();
  return shares;
}

} // namespace

std::optional<UsualShare> usual_share(std::string_view way, std::string_view through,
                                      const GpuLinks& links) {
  const auto in = [](const std::pair<double, double>& range, double value) {
    return range.first <= value && value <= range.second;
  };
  const std::vector<UsualShare>& all = usual_shares();
  const auto at = std::ranges::find_if(all, [&](const UsualShare& s) {
    return s.way == way && s.through == through && in(s.gpus, static_cast<double>(links.gpus)) &&
           in(s.bytes_per_second, links.bytes_per_second);
  });
  return at == all.end() ? std::nullopt : std::optional(*at);
}

} // namespace reckon
