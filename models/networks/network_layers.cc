#include <algorithm>

#include "models/kernels/kernels.h"
#include "models/networks/network_internal.h"

namespace sluice::models {
namespace {

constexpr float kSeluScale = 1.05070098f;  // Klambauer et al. 2017
constexpr float kSeluAlpha = 1.67326324f;

void Grow(std::vector<float>* values, size_t n) {
  if (values->size() < n) {
    values->resize(n);
  }
}

}  // namespace

LayerStack::LayerStack(const NetworkShape& shape, size_t outputs, size_t first_tensor)
    : activation_(shape.activation),
      dropout_(shape.dropout),
      embedding_width_(shape.embedding_width) {
  size_t inputs = shape.input_width();
  size_t tensor = first_tensor;
  const auto make = [&](size_t width) {
    Layer layer;
    layer.inputs = inputs;
    layer.width = width;
    layer.kernel = tensor;
    tensor += inputs > 0 ? 1 : 0;
    layer.bias = tensor++;
    inputs = width;
    return layer;
  };
  for (const size_t width : shape.hidden_units) {
    layers_.push_back(make(width));
  }
  output_ = make(outputs);
}

float* LayerStack::Input(size_t rows) {
  Grow(&input_, rows * layers_.front().inputs);
  return input_.data();
}

float* LayerStack::FirstLayer(size_t rows, const ParameterView& view) {
  Layer& layer = layers_.front();
  Grow(&layer.values, rows * layer.width);
  const GemmShape shape = {rows, layer.width, layer.inputs, layer.inputs,
                           1,    layer.width, layer.width};
  const float* kernel = layer.inputs > 0 ? view.dense[layer.kernel] : nullptr;
  ActiveKernels().gemm_bias(shape, input_.data(), kernel, view.dense[layer.bias],
                            layer.values.data());
  return layer.values.data();
}

void LayerStack::Activate(Layer* layer, size_t n) const {
  const Kernels& kernels = ActiveKernels();
  float* values = layer->values.data();
  switch (activation_) {
    case Activation::kRelu:
      return kernels.relu(values, n);
    case Activation::kTanh:
      return kernels.tanh(values, n);
    case Activation::kSigmoid:
      return kernels.sigmoid(values, n);
    case Activation::kElu:
      return kernels.elu(values, n, 1, 1);
    case Activation::kLeakyRelu:
      return kernels.leaky_relu(values, n);
    case Activation::kSelu:
      return kernels.elu(values, n, kSeluScale, kSeluAlpha);
    case Activation::kGelu:
      Grow(&layer->before, n);
      std::copy(values, values + n, layer->before.begin());
      return kernels.gelu(layer->before.data(), values, n);
  }
}

void LayerStack::Differentiate(Layer* layer, size_t n) const {
  const Kernels& kernels = ActiveKernels();
  const float* values = layer->values.data();
  float* gradient = layer->gradient.data();
  switch (activation_) {
    case Activation::kRelu:
      return kernels.relu_gradient(values, gradient, n);
    case Activation::kTanh:
      return kernels.tanh_gradient(values, gradient, n);
    case Activation::kSigmoid:
      return kernels.sigmoid_gradient(values, gradient, n);
    case Activation::kElu:
      return kernels.elu_gradient(values, gradient, n, 1, 1);
    case Activation::kLeakyRelu:
      return kernels.leaky_relu_gradient(values, gradient, n);
    case Activation::kSelu:
      return kernels.elu_gradient(values, gradient, n, kSeluScale, kSeluAlpha);
    case Activation::kGelu:
      return kernels.gelu_gradient(layer->before.data(), gradient, n);
  }
}

void LayerStack::Drop(Layer* layer, size_t n, uint64_t seed, uint64_t step, size_t index) const {
  Grow(&layer->keep, n);
  Grow(&layer->dropped, n);
  const float scale = 1.0f / (1.0f - dropout_);
  const uint64_t key = HashInteger(HashInteger(HashInteger(seed) + step) + index);
  for (size_t i = 0; i < n; ++i) {
    // The high 24 bits as a number in [0, 1).
    const float uniform = static_cast<float>(HashInteger(key + i) >> 40) * 0x1.0p-24f;
    layer->keep[i] = uniform < dropout_ ? 0.0f : scale;
    layer->dropped[i] = layer->values[i] * layer->keep[i];
  }
  layer->outputs = layer->dropped.data();
}

void LayerStack::Forward(size_t rows, const ParameterView& view, bool train, uint64_t seed,
                         uint64_t step, float* logits) {
  const Kernels& kernels = ActiveKernels();
  const float* inputs = nullptr;
  for (size_t l = 0; l < layers_.size(); ++l) {
    Layer& layer = layers_[l];
    const size_t n = rows * layer.width;
    if (l > 0) {
      Grow(&layer.values, n);
      const GemmShape shape = {rows, layer.width, layer.inputs, layer.inputs,
                               1,    layer.width, layer.width};
      kernels.gemm_bias(shape, inputs, view.dense[layer.kernel], view.dense[layer.bias],
                        layer.values.data());
    }
    Activate(&layer, n);
    layer.outputs = layer.values.data();
    if (train && dropout_ > 0) {
      Drop(&layer, n, seed, step, l);
    }
    inputs = layer.outputs;
  }
  const size_t outputs = output_.width;
  Grow(&output_.values, rows * outputs);
  if (outputs == 1) {
    kernels.row_dots(rows, output_.inputs, inputs, output_.inputs, view.dense[output_.kernel],
                     *view.dense[output_.bias], output_.values.data());
  } else {
    const GemmShape shape = {rows, outputs, output_.inputs, output_.inputs, 1, outputs, outputs};
    kernels.gemm_bias(shape, inputs, view.dense[output_.kernel], view.dense[output_.bias],
                      output_.values.data());
  }
  for (size_t i = 0; i < rows * outputs; ++i) {
    logits[i] += output_.values[i];
  }
}

void LayerStack::KernelGradient(const Layer& layer, const float* inputs, size_t input_stride,
                                size_t rows, const float* gradient_of_outputs,
                                Gradient* gradient) const {
  const Kernels& kernels = ActiveKernels();
  if (layer.inputs > 0) {
    float* to = gradient->dense[layer.kernel].data();
    if (layer.width == 1) {  // as a row: as a column of width one it would not fill the registers
      const GemmShape shape = {1, layer.inputs, rows, rows, 1, input_stride, layer.inputs};
      kernels.gemm(shape, gradient_of_outputs, inputs, to);
    } else {
      const GemmShape shape = {layer.inputs, layer.width, rows,       1,
                               input_stride, layer.width, layer.width};
      kernels.gemm(shape, inputs, gradient_of_outputs, to);
    }
  }
  kernels.column_sums(rows, layer.width, gradient_of_outputs, layer.width,
                      gradient->dense[layer.bias].data());
}

void LayerStack::InputsGradient(const Layer& layer, size_t rows, const ParameterView& view,
                                const float* gradient_of_outputs, size_t columns, float* to) {
  Grow(&transposed_, columns * layer.width);
  ActiveKernels().transpose(columns, layer.width, view.dense[layer.kernel], layer.width,
                            transposed_.data(), columns);
  const GemmShape shape = {rows, columns, layer.width, layer.width, 1, columns, columns};
  ActiveKernels().gemm(shape, gradient_of_outputs, transposed_.data(), to);
}

void LayerStack::Backward(size_t rows, const ParameterView& view, const float* logits_gradient,
                          Gradient* gradient) {
  const Layer* above = &output_;
  const float* above_gradient = logits_gradient;
  for (size_t l = layers_.size(); l-- > 0;) {
    Layer& layer = layers_[l];
    const size_t n = rows * layer.width;
    KernelGradient(*above, layer.outputs, layer.width, rows, above_gradient, gradient);
    Grow(&layer.gradient, n);
    InputsGradient(*above, rows, view, above_gradient, layer.width, layer.gradient.data());
    if (dropout_ > 0) {
      for (size_t i = 0; i < n; ++i) {
        layer.gradient[i] *= layer.keep[i];
      }
    }
    Differentiate(&layer, n);
    above = &layer;
    above_gradient = layer.gradient.data();
  }
  KernelGradient(*above, input_.data(), above->inputs, rows, above_gradient, gradient);
  if (embedding_width_ > 0) {
    Grow(&input_gradient_, rows * embedding_width_);
    InputsGradient(*above, rows, view, above_gradient, embedding_width_, input_gradient_.data());
  }
}

}  // namespace sluice::models
