// SPDX-License-Identifier: Apache-2.0
#include "documents/cells.hpp"
#include "present/document_text.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>

namespace reckon {
namespace {

/// One table. Numbers are written with as many digits as read back the same.
class Csv {
public:
  explicit Csv(std::initializer_list<std::string_view> heads) : Csv({}, heads) {}
  /// The heads are those of `first`, then `more`.
  Csv(std::span<const std::string_view> first, std::initializer_list<std::string_view> more) {
    for (const std::string_view head : first) {
      put(head);
    }
    for (const std::string_view head : more) {
      put(head);
    }
    end();
  }
  template <class T>
  Csv& put(const T& cell) {
    if constexpr (std::is_same_v<T, bool>) {
      return put_text(cell ? "true" : "false");
    } else if constexpr (std::is_arithmetic_v<T>) {
      return put_text(fmt::format("{}", cell));
    } else {
      return put_text(cell);
    }
  }
  /// A whole line.
  template <class... Cells>
  void row(const Cells&... cells) {
    (put(cells), ...);
    end();
  }
  /// Nothing where the number does not apply.
  Csv& put_if(bool applies, double number) {
    return applies ? put(number) : put(std::string_view());
  }
  Csv& put_count(std::uint64_t number) {
    return number != 0 ? put(number) : put(std::string_view());
  }
  void end() {
    m_text += '\n';
    m_at_start = true;
  }
  [[nodiscard]] std::string text() && { return std::move(m_text); }

private:
  Csv& put_text(std::string_view text) {
    m_text += m_at_start ? "" : ",";
    m_at_start = false;
    if (text.find_first_of(",\"\r\n") == text.npos) {
      m_text += text;
      return *this;
    }
    m_text += '"';
    for (const char c : text) {
      m_text += c;
      if (c == '"') {
        m_text += c;
      }
    }
    m_text += '"';
    return *this;
  }
  std::string m_text;
  bool m_at_start = true;
};

void put_key(Csv& out, const CellKey& key) {
  out.put(key.test).put(key.from).put(key.to).put_count(key.bytes);
  for (const int n : {key.threads, key.pairs, key.in_flight, key.sources}) {
    out.put_count(static_cast<std::uint64_t>(n));
  }
  out.put(key.dtype).put(key.transport).put(key.direction).put(key.operation).put(key.state);
}

std::string csv_of(const Profile& p, const ShowOptions& options) {
  const auto shown = [&](const Cell& cell) {
    return options.test.empty() || cell.key.test == options.test;
  };
  if (options.samples) {
    Csv out(k_key_names, {"unit", "index", "sample"});
    for (const Cell& cell : p.cells) {
      for (std::size_t i = 0; shown(cell) && i < cell.samples.size(); ++i) {
        put_key(out, cell.key);
        out.row(cell.unit, i, cell.samples[i]);
      }
    }
    return std::move(out).text();
  }
  Csv out(k_key_names, {"status", "unit", "n", "min", "p50", "p99", "max", "spread",
                        "bytes_convention", "ceiling", "ceiling_name", "reason"});
  for (const Cell& cell : p.cells) {
    if (!shown(cell)) {
      continue;
    }
    put_key(out, cell.key);
    out.put(name_of(cell.status)).put(cell.unit);
    const bool valued = cell.has_value();
    out.put_if(valued, static_cast<double>(cell.n));
    for (const double number : {cell.min, cell.p50, cell.p99, cell.max, cell.spread}) {
      out.put_if(valued, number);
    }
    out.put(cell.bytes_convention)
        .put_if(cell.ceiling.has_value(), cell.ceiling ? cell.ceiling->value : 0)
        .put(cell.ceiling ? cell.ceiling->name : "")
        .put(cell.reason)
        .end();
  }
  return std::move(out).text();
}

std::string csv_of(const Plan& plan, const ShowOptions& /*options*/) {
  const bool trees = !plan.trees.empty() || !plan.machine_trees.empty(),
             routes = !plan.routing.empty();
  Csv out = routes  ? Csv{"part", "offset_bytes", "bytes", "server", "lane", "tree", "tensor", "by"}
            : trees ? Csv{"part", "offset_bytes", "bytes", "server", "lane", "tree"}
                    : Csv{"part", "offset_bytes", "bytes", "server", "lane"};
  std::vector<const TensorRoute*> tensor(plan.parts.size(), nullptr);
  for (const TensorRoute& t : plan.tensors) {
    for (std::uint64_t p = t.first_part; p < t.first_part + t.parts; ++p) {
      tensor[p] = &t;
    }
  }
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    out.put(i).put(plan.parts.offset_bytes[i]).put(plan.parts.bytes[i]);
    out.put(plan.parts.server[i]).put(plan.parts.lane[i]);
    if (trees) {
      out.put(plan.parts.tree[i]);
    }
    if (routes) {
      out.put(tensor[i] != nullptr ? tensor[i]->name : "")
          .put(tensor[i] != nullptr && tensor[i]->by_workers ? "workers" : "proxies");
    }
    out.end();
  }
  return std::move(out).text();
}

std::string csv_of(const Report& report, const ShowOptions& options) {
  if (options.samples) {
    Csv out{"iteration", "seconds"};
    for (std::size_t i = 0; i < report.iteration_seconds.size(); ++i) {
      out.row(i, report.iteration_seconds[i]);
    }
    return std::move(out).text();
  }
  Csv out{"rank",         "host",           "egress_bytes", "ingress_bytes",     "total_seconds",
          "busy_seconds", "reduce_seconds", "wait_seconds", "peer_wait_seconds", "cpu_seconds"};
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    const RankReport& r = report.ranks[i];
    out.row(i, r.host, r.egress_bytes, r.ingress_bytes, r.total_seconds, r.busy_seconds,
            r.reduce_seconds, r.wait_seconds, r.peer_wait_seconds, r.cpu_seconds);
  }
  return std::move(out).text();
}

std::string csv_of(const Workload& w, const ShowOptions& /*options*/) {
  // The first three columns are what an import reads.
  Csv out{"name", "elements", "dtype", "bytes", "exchange"};
  for (const auto& [tensors, exchange] :
       {std::pair{&w.tensors, "all_reduce"}, std::pair{&w.all_to_all, "all_to_all"}}) {
    for (const Tensor& t : *tensors) {
      out.row(t.name, t.elements, name_of(t.dtype), t.bytes(), exchange);
    }
  }
  return std::move(out).text();
}

std::string csv_of(const Roles& roles, const ShowOptions& /*options*/) {
  Csv out{"machine", "count", "worker", "server", "lanes"};
  for (const RoleGroup& g : roles.groups) {
    out.row(g.machine, g.count, g.worker, g.server, g.lanes);
  }
  return std::move(out).text();
}

} // namespace

std::string csv(const Document& document, const ShowOptions& options) {
  return std::visit([&](const auto& d) { return csv_of(d, options); }, document);
}

} // namespace reckon
