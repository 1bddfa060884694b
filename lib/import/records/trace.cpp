// SPDX-License-Identifier: Apache-2.0
#include "import/records/trace.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reckon::import_detail {

const Json* TraceEvent::arg(std::string_view key) const {
  const auto at = args == nullptr ? Json::const_iterator() : args->find(key);
  return args == nullptr || at == args->end() ? nullptr : &*at;
}

std::optional<std::uint64_t> TraceEvent::count(std::string_view key) const {
  const Json* const value = arg(key);
  return value != nullptr && value->is_number_unsigned()
             ? std::optional(value->get<std::uint64_t>())
             : std::nullopt;
}

std::string TraceEvent::text(std::string_view key) const {
  const Json* const value = arg(key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

Trace::Trace(std::string_view text, const std::string& file)
    : m_json(parse_json(text, file)), m_file(file) {
  if (m_json.is_array()) {
    view().fail("is a list of events, which PyTorch's profiler writes where PyTorch was built "
                "without Kineto, as Debian's 1.13 is; such a list has neither collectives nor "
                "layers: trace with a PyTorch that has it, as PyPI's (torch.profiler."
                "kineto_available() says so)");
  }
  const auto base_ns = view().find("baseTimeNanoseconds");
  m_base_s = base_ns ? base_ns->number() * 1e-9 : 0; // absent: the events' are the clock's
  std::size_t index = 0;
  for (const Json& event : view().at("traceEvents").raw()) {
    const std::size_t at = index++;
    const auto phase = event.find("ph");
    if (phase == event.end() || *phase != "X") {
      continue;
    }
    const auto wrong = [&](std::string_view key) {
      view().fail(fmt::format("traceEvents/{}: has no {} as the profiler writes it", at, key));
    };
    const auto member = [&](std::string_view key,
                            bool (Json::*is)() const noexcept) -> const Json& {
      const auto found = event.find(key);
      if (found == event.end() || !((*found).*is)()) {
        wrong(key);
      }
      return *found;
    };
    TraceEvent& added = m_events.emplace_back();
    added.name = member("name", &Json::is_string).get_ref<const std::string&>();
    const auto category = event.find("cat");
    added.category = category != event.end() && category->is_string()
                         ? std::string_view(category->get_ref<const std::string&>())
                         : "";
    added.begin_s = member("ts", &Json::is_number).get<double>() * 1e-6;
    const double duration_s = member("dur", &Json::is_number).get<double>() * 1e-6;
    if (!(duration_s >= 0)) {
      wrong("dur");
    }
    added.end_s = added.begin_s + duration_s;
    const auto thread = event.find("tid");
    added.thread = thread == event.end() ? "" : thread->dump();
    const auto args = event.find("args");
    added.args = args != event.end() && args->is_object() ? &*args : nullptr;
  }
  std::ranges::stable_sort(m_events, [](const TraceEvent& a, const TraceEvent& b) {
    return a.begin_s != b.begin_s ? a.begin_s < b.begin_s : a.end_s > b.end_s;
  });
}

} // namespace reckon::import_detail
