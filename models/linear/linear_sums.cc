#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "models/kernels/kernels.h"
#include "models/linear/linear_equations_internal.h"
#include "models/linear_optimum.h"
#include "models/model.pb.h"
#include "models/networks/loss.h"

namespace sluice::models {
namespace {

using Vector = std::vector<double>;

// What one kind of loss needs to know of a row: residual = slope of its loss by each logit, and how
// the residuals change along a direction.
class RowLoss {
 public:
  RowLoss(Loss::Kind kind, size_t outputs) : kind_(kind), n_(outputs) {}

  // Sum of weighted losses at the logits; `state` (one per logit) gets what Bend needs,
  // `residuals` the slopes, unless they are null.
  double At(const FeatureBatch& batch, const float* logits, float* state, float* residuals) {
    const size_t count = batch.rows * n_;
    losses_.resize(count);
    scratch_.resize(count);
    float* values = state == nullptr ? scratch_.data() : state;
    if (kind_ == Loss::Kind::kLogistic) {
      ActiveKernels().logistic(logits, batch.labels.data(), losses_.data(), values, count);
    } else if (kind_ == Loss::Kind::kSoftmax) {
      Softmax(batch, logits, values);
    }
    double sum = 0;
    for (size_t r = 0; r < batch.rows; ++r) {
      const float weight = batch.weights.empty() ? 1.0F : batch.weights[r];
      double loss = 0;
      for (size_t o = 0; o < n_; ++o) {
        const size_t i = r * n_ + o;
        float slope = 0;
        if (kind_ == Loss::Kind::kSoftmax) {
          loss += o == 0 ? static_cast<double>(losses_[r]) : 0.0;
          slope = values[i] - (static_cast<size_t>(batch.labels[r]) == o ? 1.0F : 0.0F);
        } else if (kind_ == Loss::Kind::kLogistic) {
          loss += static_cast<double>(losses_[i]);
          slope = values[i] - batch.labels[i];
        } else {
          slope = logits[i] - batch.labels[i];
          loss += 0.5 * static_cast<double>(slope) * static_cast<double>(slope);
        }
        if (residuals != nullptr) {
          residuals[i] = slope * weight;
        }
      }
      sum += loss * static_cast<double>(weight);
    }
    return sum;
  }

  // In place: from the change of the logits to that of the residuals.
  void Bend(const FeatureBatch& batch, const float* state, float* change) const {
    for (size_t r = 0; r < batch.rows; ++r) {
      const float weight = batch.weights.empty() ? 1.0F : batch.weights[r];
      const float* p = state + r * n_;
      float* u = change + r * n_;
      float mean = 0;
      for (size_t o = 0; kind_ == Loss::Kind::kSoftmax && o < n_; ++o) {
        mean += p[o] * u[o];
      }
      for (size_t o = 0; o < n_; ++o) {
        const float slope = kind_ == Loss::Kind::kSoftmax    ? p[o] * (u[o] - mean)
                            : kind_ == Loss::Kind::kLogistic ? p[o] * (1 - p[o]) * u[o]
                                                             : u[o];
        u[o] = slope * weight;
      }
    }
  }

  // Of each logit by itself: how its residual changes with it.
  void Curvature(const FeatureBatch& batch, const float* state, float* curvature) const {
    for (size_t r = 0; r < batch.rows; ++r) {
      const float weight = batch.weights.empty() ? 1.0F : batch.weights[r];
      for (size_t i = r * n_; i < (r + 1) * n_; ++i) {
        curvature[i] = weight * (kind_ == Loss::Kind::kSquared ? 1.0F : state[i] * (1 - state[i]));
      }
    }
  }

 private:
  void Softmax(const FeatureBatch& batch, const float* logits, float* values) {
    std::copy_n(logits, batch.rows * n_, values);
    for (size_t r = 0; r < batch.rows; ++r) {
      float* row = values + r * n_;
      const float largest = *std::max_element(row, row + n_);
      for (size_t o = 0; o < n_; ++o) {
        row[o] -= largest;
      }
      losses_[r] = -row[static_cast<size_t>(batch.labels[r])];
    }
    ActiveKernels().exp(values, batch.rows * n_);
    for (size_t r = 0; r < batch.rows; ++r) {
      float* row = values + r * n_;
      float sum = 0;
      for (size_t o = 0; o < n_; ++o) {
        sum += row[o];
      }
      losses_[r] += std::log(sum);
      for (size_t o = 0; o < n_; ++o) {
        row[o] /= sum;
      }
    }
  }

  const Loss::Kind kind_;
  const size_t n_;
  std::vector<float> losses_, scratch_;
};

class SumsOfRows final : public LinearSums {
 public:
  explicit SumsOfRows(LinearShape linear)
      : linear_(std::move(linear)),
        form_(linear_),
        loss_(linear_.kind, linear_.outputs),
        n_(linear_.outputs) {}

  Status Sum(const LinearPass& pass, const FeatureBatch& rows, Kept* kept, Vector* sums) override {
    if (pass.kind == LinearPass::Kind::kEquations) {
      LinearEquations equations(linear_);
      equations.Add(rows);
      *sums = equations.Sums();
      return OkStatus();
    }
    if (rows.rows == 0) {
      sums->assign(LengthOf(pass.kind), 0);
      return OkStatus();
    }
    const bool along = pass.kind != LinearPass::Kind::kSlopes;
    if (pass.at.size() != form_.size() || (along && pass.direction.size() != form_.size())) {
      return InvalidArgument("a pass over the rows of another model");
    }
    switch (pass.kind) {
      case LinearPass::Kind::kSlopes:
        AddSlopes(pass, rows, kept, sums);
        break;
      case LinearPass::Kind::kBend:
        AddBend(pass, rows, kept, sums);
        break;
      default:
        AddLosses(pass, rows, kept, sums);
    }
    return OkStatus();
  }

 private:
  size_t LengthOf(LinearPass::Kind kind) const {
    return kind == LinearPass::Kind::kSlopes ? kSlopeHeads + 2 * form_.size()
           : kind == LinearPass::Kind::kBend ? form_.size()
                                             : 1;
  }
  // Which weights the form goes by.
  struct Loaded {
    bool direction = false;
    int64_t number = -1;
    bool operator==(const Loaded&) const = default;
  };
  void Load(const Loaded& which, const Vector& weights) {
    if (loaded_ != which) {
      form_.Load(weights);
      loaded_ = which;
    }
  }

  void AddSlopes(const LinearPass& pass, const FeatureBatch& rows, Kept* kept, Vector* sums) {
    const size_t size = form_.size();
    sums->assign(kSlopeHeads, 0);
    for (size_t r = 0; r < rows.rows; ++r) {
      (*sums)[kSlopeWeight] += rows.weights.empty() ? 1.0 : static_cast<double>(rows.weights[r]);
    }
    (*sums)[kSlopeRows] = static_cast<double>(rows.rows);
    row_values_.resize(rows.rows * n_);
    Look(pass, rows, kept, row_values_.data(), &(*sums)[kSlopeLoss]);
    Vector gradient(size, 0), diagonal(size, 0);
    form_.AddTransposed(rows, row_values_.data(), &gradient);
    loss_.Curvature(rows, kept->states.data(), row_values_.data());
    form_.AddSquaresTransposed(rows, row_values_.data(), &diagonal);
    sums->insert(sums->end(), gradient.begin(), gradient.end());
    sums->insert(sums->end(), diagonal.begin(), diagonal.end());
  }

  void AddBend(const LinearPass& pass, const FeatureBatch& rows, Kept* kept, Vector* sums) {
    LookUnlessKept(pass, rows, kept);
    Load({true, pass.way}, pass.direction);
    row_values_.resize(rows.rows * n_);
    form_.Multiply(rows, row_values_.data());
    loss_.Bend(rows, kept->states.data(), row_values_.data());
    sums->assign(form_.size(), 0);
    form_.AddTransposed(rows, row_values_.data(), sums);
  }

  void AddLosses(const LinearPass& pass, const FeatureBatch& rows, Kept* kept, Vector* sums) {
    LookUnlessKept(pass, rows, kept);
    const size_t count = rows.rows * n_;
    if (kept->way != pass.way || kept->changes.size() != count) {
      Load({true, pass.way}, pass.direction);
      kept->changes.resize(count);
      form_.Multiply(rows, kept->changes.data());
      kept->way = pass.way;
    }
    row_values_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      row_values_[i] = kept->logits[i] + static_cast<float>(pass.length) * kept->changes[i];
    }
    *sums = {loss_.At(rows, row_values_.data(), nullptr, nullptr)};
  }

  void LookUnlessKept(const LinearPass& pass, const FeatureBatch& rows, Kept* kept) {
    if (kept->point != pass.point || kept->logits.size() != rows.rows * n_) {
      double loss = 0;
      Look(pass, rows, kept, nullptr, &loss);
    }
  }

  void Look(const LinearPass& pass, const FeatureBatch& rows, Kept* kept, float* residuals,
            double* loss) {
    Load({false, pass.point}, pass.at);
    kept->logits.resize(rows.rows * n_);
    kept->states.resize(rows.rows * n_);
    form_.Multiply(rows, kept->logits.data());
    *loss = loss_.At(rows, kept->logits.data(), kept->states.data(), residuals);
    kept->point = pass.point;
    kept->way = -1;
  }

  const LinearShape linear_;
  LinearForm form_;
  RowLoss loss_;
  const size_t n_;
  Loaded loaded_;
  std::vector<float> row_values_;
};

void Append(const void* data, size_t size, std::string* bytes) {
  bytes->append(static_cast<const char*>(data), size);
}

// The numbers of a pass in front of its vectors, as they lie in memory: both ends are one build.
struct PassHead {
  uint8_t kind = 0;
  int64_t point = 0, way = 0;
  double length = 0;
  uint64_t at = 0, direction = 0;
};

}  // namespace

Result<std::unique_ptr<LinearSums>> LinearSums::Make(const ModelSpec& spec) {
  ASSIGN_OR_RETURN(LinearShape linear, LinearShape::Of(spec));
  return std::unique_ptr<LinearSums>(std::make_unique<SumsOfRows>(std::move(linear)));
}

std::string LinearPass::Serialize() const {
  const PassHead head{static_cast<uint8_t>(kind), point, way, length, at.size(), direction.size()};
  std::string bytes;
  Append(&head, sizeof(head), &bytes);
  Append(at.data(), at.size() * sizeof(double), &bytes);
  Append(direction.data(), direction.size() * sizeof(double), &bytes);
  return bytes;
}

Result<LinearPass> LinearPass::Parse(const std::string& bytes) {
  PassHead head;
  const auto damaged = [] { return InvalidArgument("a pass over the rows that is damaged"); };
  if (bytes.size() < sizeof(head)) {
    return damaged();
  }
  std::memcpy(&head, bytes.data(), sizeof(head));
  const uint64_t numbers = (bytes.size() - sizeof(head)) / sizeof(double);
  if (head.kind > static_cast<uint8_t>(Kind::kLosses) || head.at > numbers ||
      head.direction != numbers - head.at ||
      bytes.size() != sizeof(head) + numbers * sizeof(double)) {
    return damaged();
  }
  LinearPass pass{static_cast<Kind>(head.kind), head.point, head.way, {}, {}, head.length};
  const char* data = bytes.data() + sizeof(head);
  pass.at.resize(head.at);
  pass.direction.resize(head.direction);
  // Either may be empty, and memcpy takes no null pointer.
  if (head.at > 0) {
    std::memcpy(pass.at.data(), data, head.at * sizeof(double));
  }
  if (head.direction > 0) {
    std::memcpy(pass.direction.data(), data + head.at * sizeof(double),
                head.direction * sizeof(double));
  }
  return pass;
}

}  // namespace sluice::models
