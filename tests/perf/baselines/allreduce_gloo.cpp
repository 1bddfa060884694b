// SPDX-License-Identifier: Apache-2.0
// The time of Gloo's ring all-reduce (what PyTorch uses between CPUs), to stand beside a plan's.
// RANK and WORLD_SIZE say who we are, GLOO_INTERFACE which port to use, GLOO_STORE names an empty
// folder that all ranks see.
#include "baseline.hpp"

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <memory>

namespace {

int number(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) {
    std::fprintf(stderr, "%s is not set\n", name);
    std::exit(2);
  }
  return std::atoi(text);
}

} // namespace

int main(int argc, char** argv) {
  const baseline::Arguments arguments = baseline::parse(argc, argv);
  const int rank = number("RANK"), size = number("WORLD_SIZE");
  gloo::transport::tcp::attr attributes;
  attributes.iface = std::getenv("GLOO_INTERFACE") != nullptr ? std::getenv("GLOO_INTERFACE") : "";
  std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(std::getenv("GLOO_STORE") != nullptr ? std::getenv("GLOO_STORE")
                                                                         : ".");
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->connectFullMesh(store, device);
  std::vector<float> values(arguments.elements);
  for (int i = 0; i < arguments.iterations; ++i) {
    baseline::fill(values, rank);
    gloo::BarrierOptions barrier(context);
    gloo::barrier(barrier);
    const double start = baseline::now();
    gloo::AllreduceOptions options(context);
    options.setOutput(values.data(), values.size());
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    using Function = void (*)(void*, const void*, const void*, std::size_t);
    options.setReduceFunction(static_cast<Function>(&gloo::sum<float>));
    gloo::allreduce(options);
    std::vector<double> slowest{baseline::now() - start};
    gloo::AllreduceOptions most(context);
    most.setOutput(slowest.data(), 1);
    most.setReduceFunction(static_cast<Function>(&gloo::max<double>));
    gloo::allreduce(most);
    baseline::check(values, size);
    if (rank == 0) {
      std::printf("%.6f\n", slowest.front());
      std::fflush(stdout);
    }
  }
}
