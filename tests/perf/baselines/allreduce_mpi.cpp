// SPDX-License-Identifier: Apache-2.0
// The time of MPI's own all-reduce, to stand beside a plan's.
#include "baseline.hpp"

#include <mpi.h>

int main(int argc, char** argv) {
  const baseline::Arguments arguments = baseline::parse(argc, argv);
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  // Apart from each other: OpenMPI 4.1's han sends from MPI_IN_PLACE itself and crashes.
  std::vector<float> own(arguments.elements), values(arguments.elements);
  for (int i = 0; i < arguments.iterations; ++i) {
    baseline::fill(own, rank);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = baseline::now();
    MPI_Allreduce(own.data(), values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
    double seconds = baseline::now() - start, slowest = 0;
    MPI_Allreduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    baseline::check(values, size);
    if (rank == 0) {
      std::printf("%.6f\n", slowest);
      std::fflush(stdout);
    }
  }
  MPI_Finalize();
}
