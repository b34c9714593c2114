#include "models/networks/optimizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/letter_case.h"
#include "models/kernels/kernels.h"
#include "models/model.pb.h"
#include "models/networks/optimizer_arguments_internal.h"

// Formulas (g gradient, p parameter, r rate, t step from 1):
// - SGD, Momentum, Nesterov: Keras: v = m v - r g; p += v, or p += m v - r g
// - Adagrad: Duchi, Hazan, Singer 2011, epsilon outside the root
// - Adam, AMSGrad: Kingma, Ba 2015 (the efficient form: epsilon hat); Reddi et al. 2018
// - AdamW: Loshchilov, Hutter 2019; as in PyTorch, the rate scales the decay, too
// - Adamax: Kingma, Ba 2015, section 7.1
// - Nadam: Dozat 2016, with Keras's momentum schedule
// - RMSprop: Tieleman, Hinton 2012; centred: Graves 2013; epsilon outside the root
// - Adadelta: Zeiler 2012
// - Ftrl: McMahan et al. 2013, with TensorFlow's shrinkage and beta
namespace sluice::models {
namespace {

float AsFloat(double value) {
  return static_cast<float>(value);
}

void Fill(std::span<float> slots, float value) {
  std::fill(slots.begin(), slots.end(), value);
}

// 1 - beta^t, cached for the last (beta, t): all rows of a step need the same value, and a power
// costs as much as the update of a row.
double OneMinusPower(double beta, int64_t step) {
  struct Last {
    double beta = -1;
    int64_t step = -1;
    double value = 0;
  };
  thread_local Last last[2];  // beta_1 and beta_2
  for (const Last& known : last) {
    if (known.beta == beta && known.step == step) {
      return known.value;
    }
  }
  last[1] = last[0];
  last[0] = {beta, step, 1.0 - std::pow(beta, static_cast<double>(step))};
  return last[0].value;
}

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimizerArguments& a, bool nesterov)
      : rate_(AsFloat(a.at("learning_rate"))),
        momentum_(AsFloat(a.at("momentum"))),
        nesterov_(nesterov) {}
  size_t slot_count() const override { return momentum_ == 0 ? 0 : 1; }
  void InitializeSlots(std::span<float> slots, size_t) const override { Fill(slots, 0); }
  void Update(float* values, float* slots, const float* gradient, size_t n, int64_t,
              float rate_scale) const override {
    const float rate = rate_ * rate_scale;
    if (momentum_ == 0) {
      ActiveKernels().sgd(values, gradient, n, rate);
    } else {
      ActiveKernels().momentum(values, slots, gradient, n, rate, momentum_, nesterov_);
    }
  }

 private:
  float rate_, momentum_;
  bool nesterov_;
};

class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(const OptimizerArguments& a)
      : rate_(AsFloat(a.at("learning_rate"))),
        start_(AsFloat(a.at("initial_accumulator_value"))),
        epsilon_(AsFloat(a.at("epsilon"))) {}
  size_t slot_count() const override { return 1; }
  void InitializeSlots(std::span<float> slots, size_t) const override { Fill(slots, start_); }
  void Update(float* values, float* slots, const float* gradient, size_t n, int64_t,
              float rate_scale) const override {
    ActiveKernels().adagrad(values, slots, gradient, n, rate_ * rate_scale, epsilon_);
  }

 private:
  float rate_, start_, epsilon_;
};

class Adam final : public Optimizer {
 public:
  enum class Kind { kAdam, kAmsgrad, kAdamax };
  Adam(const OptimizerArguments& a, Kind kind)
      : kind_(kind),
        rate_(a.at("learning_rate")),
        beta_1_(a.at("beta_1")),
        beta_2_(a.at("beta_2")),
        epsilon_(AsFloat(a.at("epsilon"))) {
    if (const auto decay = a.find("weight_decay"); decay != a.end()) {
      decay_ = decay->second;
    }
  }
  size_t slot_count() const override { return kind_ == Kind::kAmsgrad ? 3 : 2; }
  void InitializeSlots(std::span<float> slots, size_t) const override { Fill(slots, 0); }
  void Update(float* values, float* slots, const float* gradient, size_t n, int64_t t,
              float rate_scale) const override {
    double rate = rate_ * static_cast<double>(rate_scale);
    if (decay_ > 0) {
      const float kept = AsFloat(std::max(0.0, 1 - rate * decay_));
      std::transform(values, values + n, values, [kept](float value) { return value * kept; });
    }
    rate /= OneMinusPower(beta_1_, t);
    if (kind_ != Kind::kAdamax) {
      rate *= std::sqrt(OneMinusPower(beta_2_, t));
    }
    const AdamStep step = {AsFloat(rate),    AsFloat(beta_1_),     AsFloat(1 - beta_1_),
                           AsFloat(beta_2_), AsFloat(1 - beta_2_), epsilon_};
    const Kernels& kernels = ActiveKernels();
    const auto update = kind_ == Kind::kAdam      ? kernels.adam
                        : kind_ == Kind::kAmsgrad ? kernels.amsgrad
                                                  : kernels.adamax;
    update(values, slots, gradient, n, step);
  }

 private:
  Kind kind_;
  double rate_, beta_1_, beta_2_;
  float epsilon_;
  double decay_ = 0;
};

// Keras's schedule: mu_t = beta_1 (1 - 0.96^(0.004 t) / 2), and the product of mu_1 .. mu_t.
struct NadamSchedule {
  double momentum = 0, next_momentum = 0, product = 1;
};

double NadamMomentum(double beta_1, int64_t step) {
  return beta_1 * (1.0 - 0.5 * std::pow(0.96, 0.004 * static_cast<double>(step)));
}

// The product is extended from the last step that was requested, always in the same order of
// factors, so that the value does not depend on earlier calls.
NadamSchedule NadamScheduleAt(double beta_1, int64_t step) {
  // Below this the product no longer changes 1 - product.
  constexpr double kVanished = 1e-18;
  struct Last {
    double beta_1 = -1;
    int64_t step = 0;
    NadamSchedule schedule;
  };
  thread_local Last last;
  if (last.beta_1 == beta_1 && last.step == step) {
    return last.schedule;
  }
  if (last.beta_1 != beta_1 || last.step > step) {
    last = {beta_1, 0, {}};
  }
  NadamSchedule schedule = last.schedule;
  for (int64_t t = last.step + 1; t <= step && schedule.product > kVanished; ++t) {
    schedule.product *= NadamMomentum(beta_1, t);
  }
  schedule.momentum = NadamMomentum(beta_1, step);
  schedule.next_momentum = NadamMomentum(beta_1, step + 1);
  last = {beta_1, step, schedule};
  return schedule;
}

class Nadam final : public Optimizer {
 public:
  explicit Nadam(const OptimizerArguments& a)
      : rate_(AsFloat(a.at("learning_rate"))),
        epsilon_(AsFloat(a.at("epsilon"))),
        beta_1_(a.at("beta_1")),
        beta_2_(a.at("beta_2")) {}
  size_t slot_count() const override { return 2; }
  void InitializeSlots(std::span<float> slots, size_t) const override { Fill(slots, 0); }
  void Update(float* values, float* slots, const float* gradient, size_t n, int64_t t,
              float rate_scale) const override {
    const NadamSchedule schedule = NadamScheduleAt(beta_1_, t);
    NadamStep step;
    step.rate = rate_ * rate_scale;
    step.beta_1 = AsFloat(beta_1_);
    step.one_minus_beta_1 = AsFloat(1 - beta_1_);
    step.beta_2 = AsFloat(beta_2_);
    step.one_minus_beta_2 = AsFloat(1 - beta_2_);
    step.epsilon = epsilon_;
    step.mean_factor =
        AsFloat(schedule.next_momentum / (1 - schedule.product * schedule.next_momentum));
    step.gradient_factor = AsFloat((1 - schedule.momentum) / (1 - schedule.product));
    step.square_factor = AsFloat(1 / OneMinusPower(beta_2_, t));
    ActiveKernels().nadam(values, slots, gradient, n, step);
  }

 private:
  float rate_, epsilon_;
  double beta_1_, beta_2_;
};

class Rmsprop final : public Optimizer {
 public:
  explicit Rmsprop(const OptimizerArguments& a)
      : step_{AsFloat(a.at("learning_rate")), AsFloat(a.at("rho")), AsFloat(1 - a.at("rho")),
              AsFloat(a.at("momentum")), AsFloat(a.at("epsilon"))},
        centered_(a.at("centered") != 0),
        with_momentum_(a.at("momentum") != 0) {}
  size_t slot_count() const override {
    return 1 + static_cast<size_t>(centered_) + static_cast<size_t>(with_momentum_);
  }
  void InitializeSlots(std::span<float> slots, size_t) const override { Fill(slots, 0); }
  void Update(float* values, float* slots, const float* gradient, size_t n, int64_t,
              float rate_scale) const override {
    RmspropStep step = step_;
    step.rate *= rate_scale;
    ActiveKernels().rmsprop(values, slots, gradient, n, step, centered_, with_momentum_);
  }

 private:
  RmspropStep step_;
  bool centered_, with_momentum_;
};

class Adadelta final : public Optimizer {
 public:
  explicit Adadelta(const OptimizerArguments& a)
      : step_{AsFloat(a.at("learning_rate")), AsFloat(a.at("rho")), AsFloat(1 - a.at("rho")),
              AsFloat(a.at("epsilon"))} {}
  size_t slot_count() const override { return 2; }
  void InitializeSlots(std::span<float> slots, size_t) const override { Fill(slots, 0); }
  void Update(float* values, float* slots, const float* gradient, size_t n, int64_t,
              float rate_scale) const override {
    AdadeltaStep step = step_;
    step.rate *= rate_scale;
    ActiveKernels().adadelta(values, slots, gradient, n, step);
  }

 private:
  AdadeltaStep step_;
};

class Ftrl final : public Optimizer {
 public:
  explicit Ftrl(const OptimizerArguments& a)
      : step_{AsFloat(1 / a.at("learning_rate")),
              AsFloat(a.at("l1_regularization_strength")),
              AsFloat(2 * a.at("l2_regularization_strength")),
              AsFloat(2 * a.at("l2_shrinkage_regularization_strength")),
              AsFloat(a.at("beta")),
              1},
        power_(-a.at("learning_rate_power")),
        start_(AsFloat(a.at("initial_accumulator_value"))) {}
  size_t slot_count() const override { return 2; }
  void InitializeSlots(std::span<float> slots, size_t n) const override {
    Fill(slots.subspan(0, n), start_);
    Fill(slots.subspan(n), 0);
  }
  // Finds the z for which the closed form gives the value.
  void Adopt(const float* values, std::span<float> slots, size_t n) const override {
    const auto start = AsFloat(std::pow(static_cast<double>(start_), power_));
    const float curvature = (start + step_.beta) * step_.inverse_rate + step_.twice_l2;
    for (size_t i = 0; i < n; ++i) {
      const float edge = values[i] == 0 ? 0 : std::copysign(step_.l1, values[i]);
      slots[n + i] = -values[i] * curvature - edge;
    }
  }
  // The rate scales all of z, not only this step: a smaller rate would shrink every weight at once.
  // Scale down a stale gradient instead.
  void Update(float* values, float* slots, const float* gradient, size_t n, int64_t,
              float rate_scale) const override {
    FtrlStep step = step_;
    step.gradient_scale = rate_scale;
    if (power_ == 0.5) {
      ActiveKernels().ftrl(values, slots, gradient, n, step);
    } else {
      UpdateWithPower(values, slots, gradient, n, step);
    }
  }

 private:
  void UpdateWithPower(float* values, float* slots, const float* gradient, size_t n,
                       const FtrlStep& s) const {
    const auto raised = [this](float sum) {
      return AsFloat(std::pow(static_cast<double>(sum), power_));
    };
    for (size_t i = 0; i < n; ++i) {
      float& sum = slots[i];
      float& z = slots[n + i];
      const float g = gradient[i] * s.gradient_scale;
      const float before = raised(sum);
      sum += g * g;
      const float after = raised(sum);
      z += g + s.twice_shrinkage * values[i] - (after - before) * s.inverse_rate * values[i];
      const float curvature = (after + s.beta) * s.inverse_rate + s.twice_l2;
      const float pull = z > 0 ? s.l1 - z : -s.l1 - z;
      values[i] = std::fabs(z) > s.l1 ? pull / curvature : 0;
    }
  }

  FtrlStep step_;
  double power_;
  float start_;
};

std::unique_ptr<Optimizer> MakeNamed(const std::string& name, const OptimizerArguments& a) {
  const auto flag = [&a](const char* argument) {
    const auto found = a.find(argument);
    return found != a.end() && found->second != 0;
  };
  if (name == "SGD" || name == "Momentum" || name == "Nesterov") {
    return std::make_unique<Sgd>(a, name == "Nesterov" || flag("nesterov"));
  }
  if (name == "Adagrad") {
    return std::make_unique<Adagrad>(a);
  }
  if (name == "Adam") {
    return std::make_unique<Adam>(a, flag("amsgrad") ? Adam::Kind::kAmsgrad : Adam::Kind::kAdam);
  }
  if (name == "AdamW") {
    return std::make_unique<Adam>(a, Adam::Kind::kAdam);
  }
  if (name == "AMSGrad") {
    return std::make_unique<Adam>(a, Adam::Kind::kAmsgrad);
  }
  if (name == "Adamax") {
    return std::make_unique<Adam>(a, Adam::Kind::kAdamax);
  }
  if (name == "Nadam") {
    return std::make_unique<Nadam>(a);
  }
  if (name == "RMSprop") {
    return std::make_unique<Rmsprop>(a);
  }
  if (name == "Adadelta") {
    return std::make_unique<Adadelta>(a);
  }
  SLUICE_CHECK(name == "Ftrl", "no update rule for the optimizer " + name);
  return std::make_unique<Ftrl>(a);
}

}  // namespace

void Optimizer::Adopt(const float*, std::span<float>, size_t) const {}

Result<std::unique_ptr<Optimizer>> Optimizer::Make(const OptimizerSpec& spec, Of of) {
  std::vector<std::string> names;
  for (const OptimizerDescription& optimizer : Optimizers()) {
    if (SameIgnoringCase(optimizer.name, spec.name())) {
      ASSIGN_OR_RETURN(OptimizerArguments arguments, ResolveArguments(optimizer, spec));
      if (of == Of::kBiases && !spec.decays_vectors()) {
        arguments.erase("weight_decay");
      }
      return MakeNamed(optimizer.name, arguments);
    }
    names.push_back(optimizer.name);
  }
  Status status = NotFound(fmt::format("no optimizer '{}'", spec.name()));
  if (const auto near = NearestName(spec.name(), names)) {
    return std::move(status).Hint(fmt::format("did you mean '{}'?", *near));
  }
  std::string all;
  for (const std::string& name : names) {
    all += all.empty() ? name : ", " + name;
  }
  return std::move(status).Hint("there are " + all);
}

}  // namespace sluice::models
