// SPDX-License-Identifier: Apache-2.0
#include "discover/topology_file.hpp"

#include "core/child.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "discover/hwloc_tree.hpp"
#include "discover/nccl_tree.hpp"
#include "discover/smi_matrix.hpp"

#include <fmt/format.h>
#include <hwloc.h>
#include <pugixml.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <string_view>

namespace reckon {
namespace {

std::string place(const std::string& file, const std::string& text, std::ptrdiff_t offset) {
  if (offset < 0) {
    return file;
  }
  const auto end = text.begin() + std::min(offset, static_cast<std::ptrdiff_t>(text.size()));
  return fmt::format("{}: line {}", file, std::count(text.begin(), end, '\n') + 1);
}

/// hwloc reads a rate that is none as "not known", without a word.
std::vector<std::string> hwloc_remarks(const pugi::xml_node& root, const std::string& file,
                                       const std::string& text) {
  std::vector<std::string> remarks;
  for (const pugi::xpath_node& found : root.select_nodes("//object[@pci_link_speed]")) {
    const pugi::xml_node element = found.node();
    const std::string_view speed = element.attribute("pci_link_speed").value();
    double rate = 0; // GB/s
    const auto [end, error] = std::from_chars(speed.data(), speed.data() + speed.size(), rate);
    if (error != std::errc{} || end != speed.data() + speed.size() || !std::isfinite(rate) ||
        rate < 0) {
      remarks.push_back(
          fmt::format("{}: <object> {} has pci_link_speed=\"{}\", which is no rate in "
                      "GB/s; taken as not known",
                      place(file, text, element.offset_debug()),
                      element.attribute("pci_busid").value(), speed));
    }
  }
  return remarks;
}

/// hwloc says of XML that a newer one wrote no more than that it is invalid.
void check_version(const std::string& version, const std::string& place) {
  constexpr unsigned k_most = HWLOC_API_VERSION >> 16U;
  unsigned major = 0;
  std::from_chars(version.data(), version.data() + version.size(), major);
  if (major > k_most) {
    fail(ErrorKind::input,
         fmt::format("{}: is hwloc XML {}, and hwloc {} reads XML of up to {}.x; write it as XML 2 "
                     "where hwloc {} is installed: `lstopo --input OLD.xml --export-xml-flags v2 "
                     "NEW.xml`, or build with hwloc {}",
                     place, version, RECKON_HWLOC_VERSION, k_most, major, major));
  }
}

/// hwloc 2.9 crashes on XML with an object that lacks a set of processors, so a child process reads
/// it first.
Topology topology_from_hwloc_xml(const std::string& text, const std::string& file,
                                 const std::string& version, const std::string& machine,
                                 const SystemFile& files) {
  const auto refuse = [&](const std::string& why) {
    fail(ErrorKind::input,
         fmt::format("{}: {}; it is hwloc XML {}: check it with `lstopo --input {}`", file, why,
                     version.empty() ? "1" : version, file));
  };
  const auto load = [&] {
    return load_hwloc(
        "hwloc_topology_set_xmlbuffer",
        [&](hwloc_topology_t raw) {
          // A recorded machine is looked at as a whole, also what its recorder was not allowed to
          // use.
          return hwloc_topology_set_xmlbuffer(raw, text.c_str(), static_cast<int>(text.size()) + 1);
        },
        [&](const char* step) {
          refuse(fmt::format("{} of hwloc {} refused it ({})", step, RECKON_HWLOC_VERSION,
                             std::strerror(errno)));
        });
  };
  const auto survive = [&] {
    try {
      static_cast<void>(load());
    } catch (const Error&) { // is said below
    }
    return std::string();
  };
  constexpr Seconds k_limit{60}; // the largest machines take less than one
  try {
    static_cast<void>(answer_of_child(survive, k_limit));
  } catch (const Error& error) {
    refuse(fmt::format("hwloc {} cannot read it: {}", RECKON_HWLOC_VERSION, error.what()));
  }
  const HwlocTopology topology = load();
  if (hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(topology.get())) < 0) {
    refuse("the machine's set of processors is infinite");
  }
  return topology_from_hwloc(topology.get(), machine, files);
}

/// What is neither XML nor a matrix.
void refuse_other_texts(const std::string& text, const std::string& file) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string::npos && (text[begin] == '<' || text.starts_with("\xef\xbb\xbf"))) {
    return;
  }
  fail(ErrorKind::input,
       fmt::format("{}: {}; give what `lstopo machine.xml`, NCCL_TOPO_DUMP_FILE or `nvidia-smi "
                   "topo -m` wrote",
                   file,
                   begin == std::string::npos ? "the file is empty"
                   : text[begin] == '{'       ? "is JSON: a profile goes to --profile"
                   : is_smi_peer_matrix(text)
                       ? "is the matrix of `nvidia-smi topo -p2p`, which says nothing of links"
                       : "is neither XML nor a matrix under \"GPU0 ... CPU Affinity\""));
}

} // namespace

RecordedTopology topology_from_text(const std::string& text, const std::string& file,
                                    const std::string& machine, const SystemFile& files) {
  constexpr std::size_t k_most_bytes = 256U << 20U;
  if (text.size() > k_most_bytes) {
    fail(ErrorKind::input,
         fmt::format("{}: more than 256 MiB; this is no machine's topology", file));
  }
  if (is_smi_matrix(text)) {
    return topology_from_smi_matrix(text, file, machine);
  }
  refuse_other_texts(text, file);
  pugi::xml_document document;
  const pugi::xml_parse_result parsed =
      document.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!parsed) {
    fail(ErrorKind::input,
         fmt::format("{}: is no XML: {}; give what `lstopo machine.xml`, NCCL_TOPO_DUMP_FILE or "
                     "`nvidia-smi topo -m` wrote",
                     place(file, text, parsed.offset), parsed.description()));
  }
  const pugi::xml_node root = document.document_element();
  RecordedTopology recorded;
  if (std::string_view(root.name()) == "topology") {
    const std::string version = root.attribute("version").value();
    check_version(version, place(file, text, root.offset_debug()));
    recorded.format = "hwloc XML " + (version.empty() ? "1" : version);
    recorded.topology = topology_from_hwloc_xml(text, file, version, machine, files);
    recorded.remarks = hwloc_remarks(root, file, text);
    return recorded;
  }
  if (std::string_view(root.name()) == "system") {
    NcclTree tree = topology_from_nccl(root, machine, [&](const pugi::xml_node& element) {
      return place(file, text, element.offset_debug());
    });
    const std::string_view version = root.attribute("version").value();
    recorded.format =
        version == "2" ? "RCCL topology XML, version 2" : "NCCL topology XML, version 1";
    recorded.topology = std::move(tree.topology);
    recorded.remarks = std::move(tree.remarks);
    return recorded;
  }
  fail(ErrorKind::input,
       fmt::format("{}: its root is <{}>; hwloc's XML has <topology>, NCCL's and RCCL's <system>",
                   place(file, text, root.offset_debug()), root.name()));
}

RecordedTopology read_topology_file(const std::string& path, const std::string& machine) {
  return topology_from_text(read_file(path), path, machine);
}

} // namespace reckon
