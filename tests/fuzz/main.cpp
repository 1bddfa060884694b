// SPDX-License-Identifier: Apache-2.0
//
// One program for all targets. With libFuzzer it takes its options and folders, and beside them
// --target=NAME; alone --list or, with a target, --seeds=FOLDER, which writes its seeds there. As a
// test, CORPUS CHANGES [NAME...], it runs targets on their seeds, on the files of CORPUS/NAME, and
// on so many changes of each of them that is JSON.
#include "target.hpp"

#include "core/file.hpp"
#include "core/log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iterator>
#include <unistd.h>

namespace reckon::fuzz {
namespace {

std::vector<Target> all_targets() {
  std::vector<Target> all;
  for (const auto& some : {reader_targets(), peer_targets(), plan_targets(), library_targets()}) {
    std::ranges::copy(some, std::back_inserter(all));
  }
  return all;
}

std::vector<std::string> contents_of(const std::string& folder) {
  std::vector<std::string> paths, contents;
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) {
        paths.push_back(entry.path().string());
      }
    }
  }
  std::ranges::sort(paths);
  std::ranges::transform(paths, std::back_inserter(contents), read_file);
  return contents;
}

} // namespace

void broken(const std::string& what) {
  std::fprintf(stderr, "broken: %s\n", what.c_str());
  std::abort();
}

void check_message(const Error& error, std::string_view file) {
  if (!std::string_view(error.what()).starts_with(file)) {
    broken(std::string("a message names no file: ") + error.what());
  }
  if (one_line(error.what()) != error.what()) {
    broken(std::string("a message has control characters: ") + one_line(error.what()));
  }
}

std::vector<std::string> files_below(const std::string& folder) {
  return contents_of(RECKON_SOURCE_DIR "/" + folder);
}

std::string file_with(const std::string& name, std::string_view content) {
  struct Folder {
    std::string path =
        (std::filesystem::temp_directory_path() / fmt::format("reckon-fuzz-{}", ::getpid()))
            .string();
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  const std::string path = folder.path + "/" + name;
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr || std::fwrite(content.data(), 1, content.size(), file) != content.size() ||
      std::fclose(file) != 0) {
    broken("no file " + path);
  }
  return path;
}

} // namespace reckon::fuzz

#ifdef RECKON_FUZZER

namespace {
const reckon::fuzz::Target* g_target = nullptr;
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using namespace reckon;
  static const std::vector<fuzz::Target> all = fuzz::all_targets();
  set_log_level(LogLevel::error);
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument((*argv)[i]);
    constexpr std::string_view k_target = "--target=", k_seeds = "--seeds=";
    if (argument == "--list") {
      for (const fuzz::Target& target : all) {
        std::printf("%s\n", target.name.c_str());
      }
      std::exit(0);
    }
    if (argument.starts_with(k_target)) {
      const auto found =
          std::ranges::find(all, argument.substr(k_target.size()), &fuzz::Target::name);
      g_target = found != all.end() ? &*found : nullptr;
    }
    if (argument.starts_with(k_seeds) && g_target != nullptr && g_target->seeds) {
      int number = 0;
      for (const std::string& seed : g_target->seeds()) {
        write_file(fmt::format("{}/seed-{}", argument.substr(k_seeds.size()), number++), seed);
      }
    }
    if (argument.starts_with(k_seeds)) {
      std::exit(0);
    }
  }
  if (g_target == nullptr) {
    std::fputs("fuzz_readers: --target=NAME is missing, or unknown (--list)\n", stderr);
    std::exit(2);
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  std::mt19937_64 random(seed);
  if (!g_target->json || random() % 8 == 0) {
    return LLVMFuzzerMutate(data, size, most);
  }
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string changed = reckon::fuzz::with_changes(text, random);
  if (changed == text || changed.size() > most) {
    return LLVMFuzzerMutate(data, size, most);
  }
  std::ranges::copy(changed, data);
  return changed.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  g_target->run({reinterpret_cast<const char*>(data), size});
  return 0;
}

#else

int main(int argc, char** argv) {
  using namespace reckon;
  const std::string corpus = argc > 1 ? argv[1] : "";
  const int changes = argc > 2 ? std::atoi(argv[2]) : 0; // of each input that is JSON
  const std::vector<std::string_view> names(argv + std::min(argc, 3), argv + argc);
  set_log_level(LogLevel::error);
  try {
    for (const fuzz::Target& target : fuzz::all_targets()) {
      if (!names.empty() && std::ranges::find(names, target.name) == names.end()) {
        continue;
      }
      std::vector<std::string> inputs =
          fuzz::contents_of(fmt::format("{}/{}", corpus, target.name));
      std::ranges::move(target.seeds ? target.seeds() : std::vector<std::string>{""},
                        std::back_inserter(inputs));
      std::mt19937_64 random(20261130);
      int runs = 0, admitted = 0;
      const auto run = [&](const std::string& input) {
        ++runs;
        admitted += target.run(input) ? 1 : 0;
      };
      for (const std::string& input : inputs) {
        run(input);
        for (int i = 0; target.json && i < changes; ++i) {
          run(fuzz::with_changes(input, random));
        }
      }
      std::printf("%s: %d of %d inputs admitted\n", target.name.c_str(), admitted, runs);
      std::fflush(stdout);
      if (admitted == 0) {
        fuzz::broken("none of them reaches what is behind the first check");
      }
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}

#endif
