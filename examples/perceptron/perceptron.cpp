// SPDX-License-Identifier: Apache-2.0
// A perceptron of one hidden layer learns a made-up function, its batch shared by the workers of a
// plan.
//
//   perceptron PLAN            one rank of the plan: a worker trains, a server sums; its rank is in
//   the environment perceptron --alone WORKERS the same batches without anybody else, to compare
//
// Each worker prints a line a step: the loss of the whole batch.
#include <reckon/reckon.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int k_inputs = 16, k_hidden = 64, k_samples = 32,
              k_steps = 20; // samples of a worker and step
constexpr float k_rate = 0.05F;

struct Sample {
  std::array<float, k_inputs> x;
  float y;
};

// What worker `worker` learns from in a step: the same wherever it is asked for.
std::vector<Sample> batch_of(int worker, int step) {
  std::mt19937 random(static_cast<unsigned>(1000 * worker + step));
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<Sample> batch(k_samples);
  for (Sample& sample : batch) {
    sample.y = 0;
    for (int i = 0; i < k_inputs; ++i) {
      sample.x[i] = number(random);
      sample.y += i % 2 == 0 ? sample.x[i] : sample.x[i] * sample.x[i];
    }
  }
  return batch;
}

// The parameters, or their gradients, in gradient order: the tensors of perceptron.csv. The loss
// travels with the gradients, so that every worker knows that of the whole batch.
struct Tensors {
  float *output_bias, *output_weight, *hidden_bias, *hidden_weight, *loss;
};
constexpr std::array<int, 5> k_elements{1, k_hidden, k_hidden, k_hidden* k_inputs, 1};

// Adds the mean gradient over `batch`, divided by `shares`. Calls `ready(first, count)` when
// tensors are complete.
template <class Ready>
void backward(const Tensors& p, const Tensors& g, const std::vector<Sample>& batch, int shares,
              Ready ready) {
  const float scale = 1.0F / static_cast<float>(batch.size() * static_cast<std::size_t>(shares));
  std::vector<std::array<float, k_hidden>> active(batch.size());
  std::vector<float> error(batch.size());
  for (std::size_t s = 0; s < batch.size(); ++s) {
    float y = *p.output_bias;
    for (int h = 0; h < k_hidden; ++h) {
      float sum = p.hidden_bias[h];
      for (int i = 0; i < k_inputs; ++i) {
        sum += p.hidden_weight[h * k_inputs + i] * batch[s].x[i];
      }
      active[s][h] = std::tanh(sum);
      y += p.output_weight[h] * active[s][h];
    }
    error[s] = (y - batch[s].y) * scale;
    *g.loss += (y - batch[s].y) * error[s];
    *g.output_bias += 2 * error[s];
  }
  for (std::size_t s = 0; s < batch.size(); ++s) {
    for (int h = 0; h < k_hidden; ++h) {
      g.output_weight[h] += 2 * error[s] * active[s][h];
    }
  }
  ready(0, 2); // the output layer's gradients travel while the hidden layer's are computed
  for (std::size_t s = 0; s < batch.size(); ++s) {
    for (int h = 0; h < k_hidden; ++h) {
      const float slope = 2 * error[s] * p.output_weight[h] * (1 - active[s][h] * active[s][h]);
      g.hidden_bias[h] += slope;
      for (int i = 0; i < k_inputs; ++i) {
        g.hidden_weight[h * k_inputs + i] += slope * batch[s].x[i];
      }
    }
  }
  ready(2, 3);
}

// The same start everywhere.
std::vector<float> first_parameters() {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> number(-0.25F, 0.25F);
  std::vector<float> all;
  for (const int elements : k_elements) {
    for (int i = 0; i < elements; ++i) {
      all.push_back(number(random));
    }
  }
  return all;
}

Tensors tensors_in(float* memory) {
  std::array<float*, 5> at{};
  for (std::size_t t = 0; t < at.size(); memory += k_elements[t++]) {
    at[t] = memory;
  }
  return {at[0], at[1], at[2], at[3], at[4]};
}

void conclude_step(int step, std::vector<float>& parameters, const float* gradient) {
  std::printf("step %d loss %.6f\n", step, static_cast<double>(gradient[parameters.size() - 1]));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i] -= k_rate * gradient[i];
  }
}

void check(reckon_status status) {
  if (status != RECKON_OK) {
    std::fprintf(stderr, "perceptron: %s\n", reckon_error());
    std::exit(1);
  }
}

void train(reckon_session* session, const reckon_description& job) {
  std::vector<float> parameters = first_parameters();
  auto* const gradient = static_cast<float*>(job.gradient);
  if (job.gradient_bytes != parameters.size() * sizeof(float)) {
    std::fprintf(stderr, "perceptron: the plan is for another model; plan for perceptron.csv\n");
    std::exit(1);
  }
  for (int step = 0; step < k_steps; ++step) {
    check(reckon_begin(session));
    std::memset(gradient, 0, job.gradient_bytes);
    backward(
        tensors_in(parameters.data()), tensors_in(gradient), batch_of(job.rank, step), 1,
        [&](std::size_t first, std::size_t count) { check(reckon_ready(session, first, count)); });
    check(reckon_wait(session, -1)); // now it is the mean over all workers
    conclude_step(step, parameters, gradient);
  }
}

int train_alone(int workers) {
  std::vector<float> parameters = first_parameters();
  for (int step = 0; step < k_steps; ++step) {
    std::vector<float> gradient(parameters.size());
    for (int worker = 0; worker < workers; ++worker) {
      backward(tensors_in(parameters.data()), tensors_in(gradient.data()), batch_of(worker, step),
               workers, [](std::size_t, std::size_t) {});
    }
    conclude_step(step, parameters, gradient.data());
  }
  return 0;
}

} // namespace

int main(int count, char** arguments) {
  if (count == 3 && std::string(arguments[1]) == "--alone") {
    return train_alone(std::atoi(arguments[2]));
  }
  if (count != 2) {
    std::fprintf(stderr, "usage: perceptron PLAN | perceptron --alone WORKERS\n");
    return 2;
  }
  reckon_options options = {};
  options.struct_bytes = sizeof options;
  options.plan = arguments[1];
  options.average = 1;
  reckon_session* session = nullptr;
  check(reckon_join(&options, &session));
  reckon_description job = {};
  job.struct_bytes = sizeof job;
  check(reckon_describe(session, &job));
  if (job.worker != 0) {
    train(session, job);
  } else {
    check(reckon_serve(session, -1));
  }
  const char* report = nullptr;
  check(reckon_report(session, &report));
  std::fprintf(stderr, "%s\n", report);
  check(reckon_leave(session));
  return 0;
}
