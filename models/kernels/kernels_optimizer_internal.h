#pragma once

#include "models/kernels/kernels.h"
#include "models/kernels/vector_internal.h"

// Update rules. Nearly all are plain loops that the compiler vectorises: no operation is fused or
// reordered, so every instruction set gives the same bits. Included only by kernels_<set>.cc.
namespace sluice::models {
namespace {

inline float Root(float x) {
  return __builtin_sqrtf(x);
}
inline float Larger(float a, float b) {
  return a > b ? a : b;
}

void Sgd(float* __restrict values, const float* __restrict gradient, size_t n, float rate) {
  for (size_t i = 0; i < n; ++i) {
    values[i] -= rate * gradient[i];
  }
}

void Momentum(float* __restrict values, float* __restrict velocity,
              const float* __restrict gradient, size_t n, float rate, float momentum,
              bool nesterov) {
  if (nesterov) {
    for (size_t i = 0; i < n; ++i) {
      const float step = rate * gradient[i];
      velocity[i] = momentum * velocity[i] - step;
      values[i] += momentum * velocity[i] - step;
    }
  } else {
    for (size_t i = 0; i < n; ++i) {
      velocity[i] = momentum * velocity[i] - rate * gradient[i];
      values[i] += velocity[i];
    }
  }
}

void Adagrad(float* __restrict values, float* __restrict sums, const float* __restrict gradient,
             size_t n, float rate, float epsilon) {
  for (size_t i = 0; i < n; ++i) {
    const float g = gradient[i];
    sums[i] += g * g;
    values[i] -= rate * g / (Root(sums[i]) + epsilon);
  }
}

// Rows of embedding tables are shorter than a register or a little longer: the compiler's loop
// would treat their numbers one by one.
void Adam(float* __restrict values, float* __restrict slots, const float* __restrict gradient,
          size_t n, const AdamStep& step) {
  const Vector rate = Broadcast(step.rate);
  const Vector epsilon = Broadcast(step.epsilon);
  const Vector beta_1 = Broadcast(step.beta_1);
  const Vector rest_1 = Broadcast(step.one_minus_beta_1);
  const Vector beta_2 = Broadcast(step.beta_2);
  const Vector rest_2 = Broadcast(step.one_minus_beta_2);
  float* __restrict means = slots;
  float* __restrict squares = slots + n;
  for (size_t i = 0; i < n; i += kLanes) {
    const size_t count = n - i < kLanes ? n - i : kLanes;
    const Vector g = LoadFirst(gradient + i, count);
    const Vector mean = beta_1 * LoadFirst(means + i, count) + rest_1 * g;
    const Vector square = beta_2 * LoadFirst(squares + i, count) + rest_2 * (g * g);
    const Vector value =
        LoadFirst(values + i, count) - rate * mean / (SquareRoot(square) + epsilon);
    StoreFirst(means + i, mean, count);
    StoreFirst(squares + i, square, count);
    StoreFirst(values + i, value, count);
  }
}

void Amsgrad(float* __restrict values, float* __restrict slots, const float* __restrict gradient,
             size_t n, const AdamStep& step) {
  const AdamStep s = step;
  float* __restrict mean = slots;
  float* __restrict square = slots + n;
  float* __restrict largest = slots + 2 * n;
  for (size_t i = 0; i < n; ++i) {
    const float g = gradient[i];
    mean[i] = s.beta_1 * mean[i] + s.one_minus_beta_1 * g;
    square[i] = s.beta_2 * square[i] + s.one_minus_beta_2 * (g * g);
    largest[i] = Larger(largest[i], square[i]);
    values[i] -= s.rate * mean[i] / (Root(largest[i]) + s.epsilon);
  }
}

void Adamax(float* __restrict values, float* __restrict slots, const float* __restrict gradient,
            size_t n, const AdamStep& step) {
  const AdamStep s = step;
  float* __restrict mean = slots;
  float* __restrict norm = slots + n;
  for (size_t i = 0; i < n; ++i) {
    const float g = gradient[i];
    mean[i] = s.beta_1 * mean[i] + s.one_minus_beta_1 * g;
    norm[i] = Larger(s.beta_2 * norm[i], Larger(g, -g));
    values[i] -= s.rate * mean[i] / (norm[i] + s.epsilon);
  }
}

void Nadam(float* __restrict values, float* __restrict slots, const float* __restrict gradient,
           size_t n, const NadamStep& step) {
  const NadamStep s = step;
  float* __restrict mean = slots;
  float* __restrict square = slots + n;
  for (size_t i = 0; i < n; ++i) {
    const float g = gradient[i];
    mean[i] = s.beta_1 * mean[i] + s.one_minus_beta_1 * g;
    square[i] = s.beta_2 * square[i] + s.one_minus_beta_2 * (g * g);
    const float ahead = s.mean_factor * mean[i] + s.gradient_factor * g;
    values[i] -= s.rate * ahead / (Root(s.square_factor * square[i]) + s.epsilon);
  }
}

// Slots: mean of squares, then the mean if centred, then the momentum if there is one.
template <bool kCentered, bool kMomentum>
void RmspropLoop(float* __restrict values, float* __restrict slots,
                 const float* __restrict gradient, size_t n, const RmspropStep& step) {
  const RmspropStep s = step;
  float* __restrict square = slots;
  float* __restrict mean = slots + n;
  float* __restrict velocity = slots + (kCentered ? 2 * n : n);
  for (size_t i = 0; i < n; ++i) {
    const float g = gradient[i];
    square[i] = s.rho * square[i] + s.one_minus_rho * (g * g);
    float variance = square[i];
    if constexpr (kCentered) {
      mean[i] = s.rho * mean[i] + s.one_minus_rho * g;
      variance = Larger(variance - mean[i] * mean[i], 0.0f);  // rounding can make it negative
    }
    const float change = s.rate * g / (Root(variance) + s.epsilon);
    if constexpr (kMomentum) {
      velocity[i] = s.momentum * velocity[i] + change;
      values[i] -= velocity[i];
    } else {
      values[i] -= change;
    }
  }
}

void Rmsprop(float* values, float* slots, const float* gradient, size_t n, const RmspropStep& step,
             bool centered, bool with_momentum) {
  if (centered && with_momentum) {
    RmspropLoop<true, true>(values, slots, gradient, n, step);
  } else if (centered) {
    RmspropLoop<true, false>(values, slots, gradient, n, step);
  } else if (with_momentum) {
    RmspropLoop<false, true>(values, slots, gradient, n, step);
  } else {
    RmspropLoop<false, false>(values, slots, gradient, n, step);
  }
}

void Adadelta(float* __restrict values, float* __restrict slots, const float* __restrict gradient,
              size_t n, const AdadeltaStep& step) {
  const AdadeltaStep s = step;
  float* __restrict square = slots;
  float* __restrict changes = slots + n;
  for (size_t i = 0; i < n; ++i) {
    const float g = gradient[i];
    square[i] = s.rho * square[i] + s.one_minus_rho * (g * g);
    const float change = Root(changes[i] + s.epsilon) / Root(square[i] + s.epsilon) * g;
    changes[i] = s.rho * changes[i] + s.one_minus_rho * (change * change);
    values[i] -= s.rate * change;
  }
}

// Slots: the sum of squares n, then z.
void Ftrl(float* __restrict values, float* __restrict slots, const float* __restrict gradient,
          size_t n, const FtrlStep& step) {
  const FtrlStep s = step;
  float* __restrict squares = slots;
  float* __restrict linear = slots + n;
  for (size_t i = 0; i < n; ++i) {
    const float g = gradient[i] * s.gradient_scale;
    const float before = Root(squares[i]);
    squares[i] += g * g;
    const float after = Root(squares[i]);
    linear[i] += g + s.twice_shrinkage * values[i] - (after - before) * s.inverse_rate * values[i];
    const float z = linear[i];
    const float pull = z > 0.0f ? s.l1 - z : -s.l1 - z;  // sign(z) l1 - z
    const float curvature = (after + s.beta) * s.inverse_rate + s.twice_l2;
    const float outside = Larger(z, -z) - s.l1;
    values[i] = outside > 0.0f ? pull / curvature : 0.0f;
  }
}

}  // namespace
}  // namespace sluice::models
