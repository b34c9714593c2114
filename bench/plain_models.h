#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

// The models of plain_loop.cc: stochastic gradient descent row by row, as short as they can be
// written. Score(row) returns the logit; Learn(row, gradient) follows the Score of the same row.
namespace sluice::plain {

inline constexpr size_t kBuckets = 4096;  // of a column, by hash
inline constexpr float kRate = 0.02F;

// A row as numbers: for each column a bucket, which has its own weights, and the value that
// multiplies them.
struct Row {
  std::vector<uint32_t> bucket;
  std::vector<float> value;
  float label = 0;
};

class Random {
 public:
  float Draw(float deviation) {
    seed_ = seed_ * 1664525 + 1013904223;
    return (static_cast<float>(seed_ >> 8) / 8388608.0F - 1) * deviation;
  }

 private:
  uint32_t seed_ = 1;
};

class Linear {
 public:
  explicit Linear(size_t columns) : weights_(columns * kBuckets) {}
  float Score(const Row& row) const {
    float sum = bias_;
    for (size_t i = 0; i < row.bucket.size(); ++i) {
      sum += weights_[row.bucket[i]] * row.value[i];
    }
    return sum;
  }
  void Learn(const Row& row, float gradient) {
    bias_ -= kRate * gradient;
    for (size_t i = 0; i < row.bucket.size(); ++i) {
      weights_[row.bucket[i]] -= kRate * gradient * row.value[i];
    }
  }

 private:
  float bias_ = 0;
  std::vector<float> weights_;
};

// Units that read an array of numbers; relu, unless it is the last layer.
template <size_t kOut, bool kRelu = true>
class Dense {
 public:
  using Outputs = std::array<float, kOut>;
  Dense(size_t inputs, Random* random) : weights_(inputs) {
    for (Outputs& row : weights_) {
      std::generate(row.begin(), row.end(), [random] { return random->Draw(0.2F); });
    }
  }
  const Outputs& Forward(const float* input) {
    out_ = bias_;
    for (size_t i = 0; i < weights_.size(); ++i) {
      for (size_t u = 0; u < kOut; ++u) {
        out_[u] += weights_[i][u] * input[i];
      }
    }
    for (float& one : out_) {
      one = kRelu ? std::max(one, 0.0F) : one;
    }
    return out_;
  }
  // `gradient`: of the outputs; writes that of the inputs.
  void Backward(const float* input, Outputs gradient, float* to_inputs) {
    for (size_t u = 0; u < kOut; ++u) {
      gradient[u] = kRelu && out_[u] <= 0 ? 0 : gradient[u];
      bias_[u] -= kRate * gradient[u];
    }
    for (size_t i = 0; i < weights_.size(); ++i) {
      float sum = 0;
      for (size_t u = 0; u < kOut; ++u) {
        sum += weights_[i][u] * gradient[u];
        weights_[i][u] -= kRate * input[i] * gradient[u];
      }
      to_inputs[i] = sum;
    }
  }

 private:
  std::vector<Outputs> weights_;
  Outputs bias_ = {}, out_ = {};
};

// 64 and 32 units; the first layer reads one row of weights for each bucket.
class Network {
 public:
  explicit Network(size_t columns) : first_(columns * kBuckets) {
    for (auto& units : first_) {
      std::generate(units.begin(), units.end(), [this] { return random_.Draw(0.2F); });
    }
  }
  float Score(const Row& row) {
    h1_ = bias_;
    for (size_t i = 0; i < row.bucket.size(); ++i) {
      for (size_t u = 0; u < h1_.size(); ++u) {
        h1_[u] += first_[row.bucket[i]][u] * row.value[i];
      }
    }
    for (float& one : h1_) {
      one = std::max(one, 0.0F);
    }
    h2_ = second_.Forward(h1_.data());
    return last_.Forward(h2_.data())[0];
  }
  void Learn(const Row& row, float gradient) {
    std::array<float, 32> d2;
    std::array<float, 64> d1;
    last_.Backward(h2_.data(), {gradient}, d2.data());
    second_.Backward(h1_.data(), d2, d1.data());
    for (size_t u = 0; u < d1.size(); ++u) {
      d1[u] = h1_[u] > 0 ? kRate * d1[u] : 0;
      bias_[u] -= d1[u];
    }
    for (size_t i = 0; i < row.bucket.size(); ++i) {
      for (size_t u = 0; u < d1.size(); ++u) {
        first_[row.bucket[i]][u] -= d1[u] * row.value[i];
      }
    }
  }

 private:
  Random random_;
  std::vector<std::array<float, 64>> first_;
  std::array<float, 64> bias_ = {}, h1_ = {};
  std::array<float, 32> h2_ = {};
  Dense<32> second_{64, &random_};
  Dense<1, false> last_{32, &random_};
};

// A factorization machine over vectors of 16 numbers, beside 64 and 32 units that read these.
// Source: Guo and others, DeepFM, 2017.
class DeepFm {
 public:
  static constexpr size_t kWidth = 16;
  explicit DeepFm(size_t columns)
      : linear_(columns), vectors_(columns * kBuckets), first_((columns - 1) * kWidth, &random_) {
    for (auto& vector : vectors_) {
      std::generate(vector.begin(), vector.end(), [this] { return random_.Draw(0.02F); });
    }
  }
  float Score(const Row& row) {
    input_.resize(row.bucket.size() * kWidth);
    sum_ = {};
    float squares = 0, pairs = 0;
    for (size_t i = 0; i < row.bucket.size(); ++i) {
      for (size_t k = 0; k < kWidth; ++k) {
        const float x = vectors_[row.bucket[i]][k] * row.value[i];
        input_[i * kWidth + k] = x;
        sum_[k] += x;
        squares += x * x;
      }
    }
    for (const float one : sum_) {
      pairs += one * one;
    }
    h1_ = first_.Forward(input_.data());
    h2_ = second_.Forward(h1_.data());
    return linear_.Score(row) + (pairs - squares) / 2 + last_.Forward(h2_.data())[0];
  }
  void Learn(const Row& row, float gradient) {
    std::array<float, 32> d2;
    std::array<float, 64> d1;
    to_input_.resize(input_.size());
    linear_.Learn(row, gradient);
    last_.Backward(h2_.data(), {gradient}, d2.data());
    second_.Backward(h1_.data(), d2, d1.data());
    first_.Backward(input_.data(), d1, to_input_.data());
    for (size_t i = 0; i < row.bucket.size(); ++i) {
      for (size_t k = 0; k < kWidth; ++k) {
        const size_t at = i * kWidth + k;
        vectors_[row.bucket[i]][k] -=
            kRate * row.value[i] * (to_input_[at] + gradient * (sum_[k] - input_[at]));
      }
    }
  }

 private:
  Random random_;
  Linear linear_;
  std::vector<std::array<float, kWidth>> vectors_;
  std::vector<float> input_, to_input_;
  std::array<float, kWidth> sum_ = {};
  std::array<float, 64> h1_ = {};
  std::array<float, 32> h2_ = {};
  Dense<64> first_;
  Dense<32> second_{64, &random_};
  Dense<1, false> last_{32, &random_};
};

}  // namespace sluice::plain
