#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "models/kernels/kernels.h"

// The cells of recurrent layers, one direction at a time. Included by recurrent.cc.
namespace sluice::models::graph {

enum class Cell { kSimple, kLstm, kGru };

inline constexpr size_t GatesOf(Cell cell) {
  return cell == Cell::kSimple ? 1 : (cell == Cell::kLstm ? 4 : 3);
}

// One direction of a layer. Gates of a step and row lie side by side in ONNX's order: i o f c of
// the LSTM, z r h of the GRU; `hidden` numbers each.
template <Cell kCell>
class Direction {
 public:
  static constexpr size_t kGates = GatesOf(kCell);
  size_t steps = 0;
  size_t rows = 0;
  size_t inputs = 0;
  size_t hidden = 0;
  bool backwards = false;
  bool reset_after = false;  // GRU: linear_before_reset
  bool relu = false;         // simple: relu instead of tanh

  // Where this direction has its share of the layer's values and gradients. nullptr: left out, or
  // nobody wants it.
  struct Memory {
    const float* x = nullptr;
    const float* w = nullptr;
    const float* r = nullptr;
    const float* bias = nullptr;  // 2 x gates x hidden
    const float* first_h = nullptr;
    const float* first_c = nullptr;
    float* y = nullptr;  // of step 0
    size_t y_stride = 0;
  };
  struct Back {
    const float* y = nullptr;
    const float* last_h = nullptr;
    const float* last_c = nullptr;
    float* x = nullptr;
    float* w = nullptr;
    float* r = nullptr;
    float* bias = nullptr;
    float* first_h = nullptr;
    float* first_c = nullptr;
  };

  void Forward(const Kernels& kernels, const Memory& memory) {
    const size_t width = kGates * hidden;
    gates_.resize(steps * rows * width);
    pushed_.resize(rows * width);
    candidates_.resize(kCell == Cell::kGru ? steps * rows * hidden : 0);
    cells_.resize(kCell == Cell::kLstm ? steps * rows * hidden : 0);
    squashed_.resize(cells_.size());
    zeros_.assign(std::max(rows * hidden, 2 * width), 0.0F);
    Transpose(kernels, width, inputs, memory.w, &w_turned_);
    Transpose(kernels, width, hidden, memory.r, &r_turned_);
    const float* bias = memory.bias == nullptr ? zeros_.data() : memory.bias;
    if (steps * rows > 0) {
      kernels.gemm_bias({steps * rows, width, inputs, inputs, 1, width, width}, memory.x,
                        w_turned_.data(), bias, gates_.data());
    }
    for (size_t i = 0; i < steps; ++i) {
      const size_t step = StepOf(i);
      const float* h = HiddenBefore(memory, i);
      if (rows > 0) {
        Step(kernels, memory, i, step, h, bias + width);
      }
    }
  }

  void Backward(const Kernels& kernels, const Memory& memory, const Back& back) {
    const size_t width = kGates * hidden;
    const size_t n = rows * hidden;
    to_gates_.resize(steps * rows * width);
    to_pushed_.resize(kCell == Cell::kGru ? steps * rows * width : 0);
    to_h_.assign(n, 0.0F);
    to_c_.assign(n, 0.0F);
    if (back.last_h != nullptr) {
      std::copy_n(back.last_h, n, to_h_.data());
    }
    if (back.last_c != nullptr) {
      std::copy_n(back.last_c, n, to_c_.data());
    }
    next_.resize(n);
    for (size_t i = steps; i-- > 0 && rows > 0;) {
      const size_t step = StepOf(i);
      for (size_t k = 0; back.y != nullptr && k < n; ++k) {
        to_h_[k] += back.y[step * memory.y_stride + k];
      }
      BackwardStep(kernels, memory, back, i, step);
      to_h_.swap(next_);
    }
    for (size_t k = 0; k < n; ++k) {
      if (back.first_h != nullptr) {
        back.first_h[k] += to_h_[k];
      }
      if (back.first_c != nullptr) {
        back.first_c[k] += to_c_[k];
      }
    }
    const size_t lines = steps * rows;
    if (lines == 0) {
      return;
    }
    if (back.w != nullptr) {
      kernels.gemm_add({width, inputs, lines, 1, width, inputs, inputs}, to_gates_.data(), memory.x,
                       back.w);
    }
    if (back.x != nullptr) {
      kernels.gemm_add({lines, inputs, width, width, 1, inputs, inputs}, to_gates_.data(), memory.w,
                       back.x);
    }
    if (back.bias != nullptr) {
      sums_.resize(width);
      kernels.column_sums(lines, width, to_gates_.data(), width, sums_.data());
      AddTo(sums_, back.bias);
      kernels.column_sums(lines, width, ToPushed(), width, sums_.data());
      AddTo(sums_, back.bias + width);
    }
  }

  // The LSTM's cells after the last step.
  const float* LastCells() const { return cells_.data() + StepOf(steps - 1) * rows * hidden; }
  size_t StepOf(size_t i) const { return backwards ? steps - 1 - i : i; }

 private:
  static void Transpose(const Kernels& kernels, size_t rows, size_t columns, const float* from,
                        std::vector<float>* to) {
    to->resize(rows * columns);
    kernels.transpose(rows, columns, from, columns, to->data(), rows);
  }
  static void AddTo(const std::vector<float>& from, float* to) {
    for (size_t i = 0; i < from.size(); ++i) {
      to[i] += from[i];
    }
  }
  const float* HiddenBefore(const Memory& memory, size_t i) const {
    if (i > 0) {
      return memory.y + StepOf(i - 1) * memory.y_stride;
    }
    return memory.first_h == nullptr ? zeros_.data() : memory.first_h;
  }
  const float* CellsBefore(const Memory& memory, size_t i) const {
    if (i > 0) {
      return cells_.data() + StepOf(i - 1) * rows * hidden;
    }
    return memory.first_c == nullptr ? zeros_.data() : memory.first_c;
  }
  // The gradient of what the hidden state pushed into the gates.
  const float* ToPushed() const {
    return kCell == Cell::kGru ? to_pushed_.data() : to_gates_.data();
  }

  void Step(const Kernels& kernels, const Memory& memory, size_t i, size_t step, const float* h,
            const float* bias) {
    const size_t width = kGates * hidden;
    float* y = memory.y + step * memory.y_stride;
    float* gates = gates_.data() + step * rows * width;
    // Of a GRU that resets before the product, the last gate's push comes later.
    const size_t at_once = kCell == Cell::kGru && !reset_after ? 2 * hidden : width;
    kernels.gemm_bias({rows, at_once, hidden, hidden, 1, width, width}, h, r_turned_.data(), bias,
                      pushed_.data());
    if constexpr (kCell == Cell::kSimple) {
      for (size_t k = 0; k < rows * hidden; ++k) {
        y[k] = gates[k] + pushed_[k];
      }
      relu ? kernels.relu(y, rows * hidden) : kernels.tanh(y, rows * hidden);
    } else if constexpr (kCell == Cell::kLstm) {
      LstmStep(kernels, step, CellsBefore(memory, i), gates, y);
    } else {
      GruStep(kernels, step, h, bias + 2 * hidden, gates, y);
    }
  }

  void LstmStep(const Kernels& kernels, size_t step, const float* before, float* gates, float* y) {
    float* cells = cells_.data() + step * rows * hidden;
    float* squashed = squashed_.data() + step * rows * hidden;
    for (size_t row = 0; row < rows; ++row) {
      float* gate = gates + row * 4 * hidden;
      for (size_t k = 0; k < 4 * hidden; ++k) {
        gate[k] += pushed_[row * 4 * hidden + k];
      }
      kernels.sigmoid(gate, 3 * hidden);
      kernels.tanh(gate + 3 * hidden, hidden);
      for (size_t k = 0; k < hidden; ++k) {
        const size_t at = row * hidden + k;
        cells[at] = gate[2 * hidden + k] * before[at] + gate[k] * gate[3 * hidden + k];
      }
    }
    std::copy_n(cells, rows * hidden, squashed);
    kernels.tanh(squashed, rows * hidden);
    for (size_t row = 0; row < rows; ++row) {
      for (size_t k = 0; k < hidden; ++k) {
        const size_t at = row * hidden + k;
        y[at] = squashed[at] * gates[row * 4 * hidden + hidden + k];
      }
    }
  }

  // h~ = tanh(x W + r (h R + b)), or tanh(x W + (r h) R + b) where it resets before the product.
  void GruStep(const Kernels& kernels, size_t step, const float* h, const float* candidate_bias,
               float* gates, float* y) {
    const size_t width = 3 * hidden;
    float* candidates = candidates_.data() + step * rows * hidden;
    for (size_t row = 0; row < rows; ++row) {
      float* gate = gates + row * width;
      for (size_t k = 0; k < 2 * hidden; ++k) {
        gate[k] += pushed_[row * width + k];
      }
      kernels.sigmoid(gate, 2 * hidden);
      for (size_t k = 0; k < hidden; ++k) {
        const size_t at = row * hidden + k;
        candidates[at] =
            reset_after ? pushed_[row * width + 2 * hidden + k] : gate[hidden + k] * h[at];
      }
    }
    if (!reset_after) {
      kernels.gemm_bias({rows, hidden, hidden, hidden, 1, width, width}, candidates,
                        r_turned_.data() + 2 * hidden, candidate_bias, pushed_.data() + 2 * hidden);
    }
    for (size_t row = 0; row < rows; ++row) {
      float* gate = gates + row * width;
      for (size_t k = 0; k < hidden; ++k) {
        const float pushed = pushed_[row * width + 2 * hidden + k];
        gate[2 * hidden + k] += reset_after ? gate[hidden + k] * pushed : pushed;
      }
      kernels.tanh(gate + 2 * hidden, hidden);
      for (size_t k = 0; k < hidden; ++k) {
        const size_t at = row * hidden + k;
        y[at] = (1.0F - gate[k]) * gate[2 * hidden + k] + gate[k] * h[at];
      }
    }
  }

  // From to_h_ (and to_c_) of a step to those before it: next_ (and to_c_), and the step's gates.
  void BackwardStep(const Kernels& kernels, const Memory& memory, const Back& back, size_t i,
                    size_t step) {
    const size_t width = kGates * hidden;
    const float* h = HiddenBefore(memory, i);
    const float* y = memory.y + step * memory.y_stride;
    const float* gates = gates_.data() + step * rows * width;
    float* to_gates = to_gates_.data() + step * rows * width;
    std::fill(next_.begin(), next_.end(), 0.0F);
    if constexpr (kCell == Cell::kSimple) {
      for (size_t k = 0; k < rows * hidden; ++k) {
        const float slope = relu ? (y[k] > 0 ? 1.0F : 0.0F) : 1.0F - y[k] * y[k];
        to_gates[k] = to_h_[k] * slope;
      }
    } else if constexpr (kCell == Cell::kLstm) {
      BackwardLstm(step, CellsBefore(memory, i), gates, to_gates);
    } else {
      BackwardGru(kernels, memory, back, step, h, gates, to_gates);
    }
    const float* pushed = ToPushed() + step * rows * width;
    const size_t at_once = kCell == Cell::kGru && !reset_after ? 2 * hidden : width;
    kernels.gemm_add({rows, hidden, at_once, width, 1, hidden, hidden}, pushed, memory.r,
                     next_.data());
    if (back.r != nullptr) {
      kernels.gemm_add({at_once, hidden, rows, 1, width, hidden, hidden}, pushed, h, back.r);
    }
  }

  void BackwardLstm(size_t step, const float* before, const float* gates, float* to_gates) {
    const float* squashed = squashed_.data() + step * rows * hidden;
    for (size_t row = 0; row < rows; ++row) {
      const float* gate = gates + row * 4 * hidden;
      float* to = to_gates + row * 4 * hidden;
      for (size_t k = 0; k < hidden; ++k) {
        const size_t at = row * hidden + k;
        const float in = gate[k];
        const float out = gate[hidden + k];
        const float forget = gate[2 * hidden + k];
        const float fresh = gate[3 * hidden + k];
        const float to_cell = to_c_[at] + to_h_[at] * out * (1.0F - squashed[at] * squashed[at]);
        to[k] = to_cell * fresh * in * (1.0F - in);
        to[hidden + k] = to_h_[at] * squashed[at] * out * (1.0F - out);
        to[2 * hidden + k] = to_cell * before[at] * forget * (1.0F - forget);
        to[3 * hidden + k] = to_cell * in * (1.0F - fresh * fresh);
        to_c_[at] = to_cell * forget;
      }
    }
  }

  void BackwardGru(const Kernels& kernels, const Memory& memory, const Back& back, size_t step,
                   const float* h, const float* gates, float* to_gates) {
    const size_t width = 3 * hidden;
    const float* candidates = candidates_.data() + step * rows * hidden;
    float* pushed = to_pushed_.data() + step * rows * width;
    for (size_t row = 0; row < rows; ++row) {
      const float* gate = gates + row * width;
      for (size_t k = 0; k < hidden; ++k) {
        const size_t at = row * hidden + k;
        const float update = gate[k];
        const float fresh = gate[2 * hidden + k];
        float* to = to_gates + row * width + k;
        to[0] = to_h_[at] * (h[at] - fresh) * update * (1.0F - update);
        to[2 * hidden] = to_h_[at] * (1.0F - update) * (1.0F - fresh * fresh);
        next_[at] = to_h_[at] * update;
      }
    }
    if (!reset_after) {  // to_reset_: of r h
      to_reset_.assign(rows * hidden, 0.0F);
      kernels.gemm_add({rows, hidden, hidden, width, 1, hidden, hidden}, to_gates + 2 * hidden,
                       memory.r + 2 * hidden * hidden, to_reset_.data());
      if (back.r != nullptr) {
        kernels.gemm_add({hidden, hidden, rows, 1, width, hidden, hidden}, to_gates + 2 * hidden,
                         candidates, back.r + 2 * hidden * hidden);
      }
    }
    for (size_t row = 0; row < rows; ++row) {
      const float* gate = gates + row * width;
      for (size_t k = 0; k < hidden; ++k) {
        const size_t at = row * hidden + k;
        const float reset = gate[hidden + k];
        float* to = to_gates + row * width + k;
        float* own = pushed + row * width + k;
        const float to_reset =
            reset_after ? to[2 * hidden] * candidates[at] : to_reset_[at] * h[at];
        to[hidden] = to_reset * reset * (1.0F - reset);
        own[0] = to[0];
        own[hidden] = to[hidden];
        own[2 * hidden] = reset_after ? to[2 * hidden] * reset : to[2 * hidden];
        if (!reset_after) {
          next_[at] += to_reset_[at] * reset;
        }
      }
    }
  }

  std::vector<float> gates_;       // steps x rows x gates, after their functions
  std::vector<float> pushed_;      // of one step: what the hidden state adds to the gates
  std::vector<float> candidates_;  // GRU: the push into h~, or r h
  std::vector<float> cells_;
  std::vector<float> squashed_;  // tanh of the cells
  std::vector<float> w_turned_;
  std::vector<float> r_turned_;
  std::vector<float> zeros_;
  std::vector<float> to_gates_;
  std::vector<float> to_pushed_;
  std::vector<float> to_reset_;
  std::vector<float> to_h_;
  std::vector<float> to_c_;
  std::vector<float> next_;
  std::vector<float> sums_;
};

}  // namespace sluice::models::graph
