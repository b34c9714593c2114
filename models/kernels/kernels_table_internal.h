#pragma once

#include "models/kernels/kernels.h"

// What each kernels_<set>.cc defines: the table of its own copies of the loops.
namespace sluice::models {

const Kernels& Avx512Kernels();
const Kernels& Avx2Kernels();
const Kernels& BaselineKernels();

}  // namespace sluice::models

#define SLUICE_KERNEL_TABLE(set_name)                                                             \
  {                                                                                               \
    .name = set_name, .gemm = Gemm, .gemm_bias = GemmBias, .gemm_add = GemmAdd,                   \
    .transpose = Transpose, .row_dots = RowDots, .column_sums = ColumnSums, .exp = Exp,           \
    .log = Log, .erf = Erf, .relu = Relu, .leaky_relu = LeakyRelu, .elu = Elu, .tanh = Tanh,      \
    .sigmoid = Sigmoid, .gelu = Gelu, .relu_gradient = ReluGradient,                              \
    .leaky_relu_gradient = LeakyReluGradient, .elu_gradient = EluGradient,                        \
    .tanh_gradient = TanhGradient, .sigmoid_gradient = SigmoidGradient,                           \
    .gelu_gradient = GeluGradient, .pow = Pow, .logistic = Logistic,                              \
    .gather_rows = GatherAny<Copy>, .gather_add_rows = GatherAny<Accumulate>,                     \
    .scatter_add_rows = ScatterAny, .uniforms = Uniforms, .normals = Normals, .sgd = Sgd,         \
    .momentum = Momentum, .adagrad = Adagrad, .adam = Adam, .amsgrad = Amsgrad, .adamax = Adamax, \
    .nadam = Nadam, .rmsprop = Rmsprop, .adadelta = Adadelta, .ftrl = Ftrl                        \
  }
