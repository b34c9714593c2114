#pragma once

#include <stddef.h>
#include <stdint.h>

namespace sluice::models {

// C[m x n] (+)= A[m x k] B[k x n], all floats in the caller's memory. B and C are row-major; A is
// addressed by two strides, so that A and its transpose need no copy.
struct GemmShape {
  size_t m = 0, n = 0, k = 0;
  size_t a_row_stride = 0, a_column_stride = 1;
  size_t b_stride = 0;
  size_t c_stride = 0;
};

// Initial values are generated in kInitialBlocks blocks of kInitialValues: enough for any register,
// and for several chains of operations to overlap.
constexpr size_t kInitialValues = 16;
constexpr size_t kInitialBlocks = 4;

struct AdamStep {
  float rate, beta_1, one_minus_beta_1, beta_2, one_minus_beta_2, epsilon;
};
struct NadamStep {
  float rate, beta_1, one_minus_beta_1, beta_2, one_minus_beta_2, epsilon;
  float mean_factor, gradient_factor, square_factor;  // bias corrections of this step
};
struct RmspropStep {
  float rate, rho, one_minus_rho, momentum, epsilon;
};
struct AdadeltaStep {
  float rate, rho, one_minus_rho, epsilon;
};
struct FtrlStep {  // learning_rate_power = -1/2
  float inverse_rate, l1, twice_l2, twice_shrinkage, beta, gradient_scale;
};

// The inner loops, compiled once per instruction set; the best set for the processor is chosen at
// run time. The sets with fused multiply-add give the same bits: every output is one chain of
// operations in a fixed order, however wide the registers are. Thread-safe, no state.
struct Kernels {
  const char* name;

  // First value of each output: 0, bias[j] or C's own.
  void (*gemm)(const GemmShape& shape, const float* a, const float* b, float* c);
  void (*gemm_bias)(const GemmShape& shape, const float* a, const float* b, const float* bias,
                    float* c);
  void (*gemm_add)(const GemmShape& shape, const float* a, const float* b, float* c);

  void (*transpose)(size_t rows, size_t columns, const float* from, size_t from_stride, float* to,
                    size_t to_stride);
  // dots[r] = bias + the dot product of row r and `weights`: 16 running sums (column modulo 16),
  // added pairwise by halves, whatever the registers' width.
  void (*row_dots)(size_t rows, size_t columns, const float* values, size_t stride,
                   const float* weights, float bias, float* dots);
  // sums[j] = sum over rows, first row first.
  void (*column_sums)(size_t rows, size_t columns, const float* values, size_t stride, float* sums);

  // In place. exp is within 2 units of the last place; arguments beyond +-87 are clamped.
  void (*exp)(float* values, size_t n);
  // Within 2 units of the last place; NaN for negative numbers, minus infinity for 0.
  void (*log)(float* values, size_t n);
  void (*erf)(float* values, size_t n);
  void (*relu)(float* values, size_t n);
  void (*leaky_relu)(float* values, size_t n);
  void (*elu)(float* values, size_t n, float scale, float alpha);
  void (*tanh)(float* values, size_t n);
  void (*sigmoid)(float* values, size_t n);
  void (*gelu)(const float* inputs, float* outputs, size_t n);
  // gradient *= derivative, computed from the activation's output (gelu: from its input).
  void (*relu_gradient)(const float* outputs, float* gradient, size_t n);
  void (*leaky_relu_gradient)(const float* outputs, float* gradient, size_t n);
  void (*elu_gradient)(const float* outputs, float* gradient, size_t n, float scale, float alpha);
  void (*tanh_gradient)(const float* outputs, float* gradient, size_t n);
  void (*sigmoid_gradient)(const float* outputs, float* gradient, size_t n);
  void (*gelu_gradient)(const float* inputs, float* gradient, size_t n);

  // powers[i] = bases[i] to the power of exponents[i], computed with exp and log, so the error
  // grows with the logarithm of the result: 2e-7 times that. A negative base requires an integer
  // exponent.
  void (*pow)(const float* bases, const float* exponents, float* powers, size_t n);

  // losses[i] = log(1 + exp(-|z|)) + max(z, 0) - z y; probabilities[i] = 1 / (1 + exp(-z)).
  void (*logistic)(const float* logits, const float* labels, float* losses, float* probabilities,
                   size_t n);

  // to[r][0, width) = rows[positions[r]][0, width), or += it; rows[positions[r]] += from[r].
  // Strides are from row to row.
  void (*gather_rows)(const float* rows, size_t rows_stride, const uint32_t* positions,
                      size_t count, size_t width, float* to, size_t to_stride);
  void (*gather_add_rows)(const float* rows, size_t rows_stride, const uint32_t* positions,
                          size_t count, size_t width, float* to, size_t to_stride);
  void (*scatter_add_rows)(const float* from, size_t from_stride, const uint32_t* positions,
                           size_t count, size_t width, float* rows, size_t rows_stride);

  // kInitialBlocks blocks of kInitialValues random values, each block from the counters
  // [first_pair, first_pair + kInitialValues / 2) of a key: between -limit and limit, or normal.
  // The same bits in every set: no operation is fused.
  void (*uniforms)(uint64_t key, const uint64_t* first_pairs, float limit, float* values);
  void (*normals)(uint64_t key, const uint64_t* first_pairs, float stddev, float* values);

  // One step of an optimizer; `slots` as in Optimizer::Update.
  void (*sgd)(float* values, const float* gradient, size_t n, float rate);
  void (*momentum)(float* values, float* velocity, const float* gradient, size_t n, float rate,
                   float momentum, bool nesterov);
  void (*adagrad)(float* values, float* sums, const float* gradient, size_t n, float rate,
                  float epsilon);
  void (*adam)(float* values, float* slots, const float* gradient, size_t n, const AdamStep& step);
  void (*amsgrad)(float* values, float* slots, const float* gradient, size_t n,
                  const AdamStep& step);
  void (*adamax)(float* values, float* slots, const float* gradient, size_t n,
                 const AdamStep& step);
  void (*nadam)(float* values, float* slots, const float* gradient, size_t n,
                const NadamStep& step);
  void (*rmsprop)(float* values, float* slots, const float* gradient, size_t n,
                  const RmspropStep& step, bool centered, bool with_momentum);
  void (*adadelta)(float* values, float* slots, const float* gradient, size_t n,
                   const AdadeltaStep& step);
  void (*ftrl)(float* values, float* slots, const float* gradient, size_t n, const FtrlStep& step);
};

// The best for this processor.
const Kernels& ActiveKernels();
// All sets that this processor can run, best first.
struct KernelSets {
  const Kernels* sets[3] = {};
  size_t count = 0;
  const Kernels* const* begin() const { return sets; }
  const Kernels* const* end() const { return sets + count; }
};
KernelSets SupportedKernels();

}  // namespace sluice::models
