// SPDX-License-Identifier: Apache-2.0
// Instead of plot.cpp in a build without gnuplot-iostream.
#include "present/plot.hpp"

#include "core/error.hpp"

namespace reckon {
namespace {

[[noreturn]] void refuse() {
  fail(ErrorKind::unavailable,
       "this build draws no pictures; install libgnuplot-iostream-dev and gnuplot-nox and build "
       "with -DRECKON_WITH_GNUPLOT=ON, or use --csv");
}

} // namespace

void plot_curves(const Profile& /*profile*/, const std::string& /*test*/,
                 const std::string& /*path*/) {
  refuse();
}
void plot_matrix(const Profile& /*profile*/, const std::string& /*test*/,
                 const std::string& /*path*/) {
  refuse();
}
void plot_report(const Report& /*report*/, const std::string& /*path*/) {
  refuse();
}

} // namespace reckon
