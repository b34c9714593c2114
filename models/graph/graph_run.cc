#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "models/features/feature_transform.h"
#include "models/graph/graph_run_internal.h"

namespace sluice::models::graph {
namespace {

// Values known before a batch determine shapes, which have few axes; longer ones need not be known.
constexpr int64_t kMaxKnown = 1 << 16;

// Sets the memory of the inputs that lie in the joined value.
void PlaceRows(const OperatorContext& node, float* Tensor::*memory) {
  int64_t at = 0;
  for (Tensor* input : node.inputs) {
    if (input->line > 0) {
      input->*memory = node.Out().*memory + at;
    }
    at += input->shape.back();
  }
}

}  // namespace

Tensor* GraphRun::Find(const std::string& name) {
  const auto found = names_.find(name);
  return found == names_.end() || readers_[found->second] == 0 ? nullptr : &tensors_[found->second];
}

Status GraphRun::Plan(int64_t rows, bool with_loss) {
  with_loss = with_loss && loss_;
  if (rows == rows_ && with_loss == with_loss_) {
    return OkStatus();
  }
  rows_ = -1;
  with_loss_ = with_loss;
  elements_ = 0;
  allocated_ = prepared_ = false;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    Tensor& tensor = tensors_[t];
    tensor.known = false;
    if (t >= given_) {
      tensor.gradient = nullptr;
      tensor.trained = false;
      tensor.line = 0;
      tensor.base = nullptr;
    }
  }
  for (int i = 0; i < graph_.inputs_size(); ++i) {
    const GraphInput& input = graph_.inputs(i);
    Tensor& tensor = tensors_[static_cast<size_t>(i)];
    tensor.shape = {rows};
    if (input.kind() == GraphInput::NUMBERS ||
        (input.kind() == GraphInput::LABEL && input.width() > 0)) {
      tensor.shape.push_back(input.width());
    } else if (input.length() > 0 || input.kind() == GraphInput::MASK) {
      tensor.shape.push_back(input.length());
    }
    RETURN_IF_ERROR(CheckShape(tensor.shape).Because(fmt::format("input '{}'", input.name())));
    elements_ += tensor.size();
  }
  for (Step& step : steps_) {
    if (!Runs(step)) {
      continue;
    }
    if (Status status = PlanStep(&step); !status.ok()) {
      return std::move(status).Because(NameOf(*step.node));
    }
  }
  for (const Step& step : steps_) {
    if (Runs(step) && !step.fixed && step.run->JoinsRows()) {
      JoinRows(step);
    }
  }
  rows_ = rows;
  return OkStatus();
}

Status GraphRun::PlanStep(Step* step) {
  OperatorContext& context = step->context;
  bool known = true;
  bool trained = false;
  step->fixed = step->run->IsFunction();
  for (const Tensor* input : context.inputs) {
    known = known && (input == nullptr || input->known);
    step->fixed = step->fixed && (input == nullptr || input->fixed);
    trained = trained || (input != nullptr && input->trained);
  }
  RETURN_IF_ERROR(step->run->Plan(context));
  const bool of_shapes = step->node->op_type() == "Shape";
  known = (known || of_shapes) && step->run->IsFunction();
  step->fixed = step->fixed || of_shapes;
  step->learns = false;
  int64_t elements = 0;
  for (Tensor* output : context.outputs) {
    if (output != nullptr) {
      output->trained = trained && output->type == ElementType::kFloat;
      output->fixed = step->fixed;
      step->learns = step->learns || output->trained;
      elements += output->size();
    }
  }
  if (step->run->IsView() && IndexOf(*context.inputs[0]) >= given_) {
    context.outputs[0]->base = &context.inputs[0]->gradient_owner();
  }
  elements_ += step->run->IsView() ? 0 : elements;
  if (elements_ > kMaxElementsTogether) {
    return InvalidArgument(fmt::format("the values of a batch have more than {} elements together",
                                       kMaxElementsTogether))
        .Hint("a smaller train.batch_size takes less");
  }
  step->done = known && elements <= kMaxKnown;
  if (step->done) {
    for (Tensor* output : context.outputs) {
      if (output != nullptr) {
        output->known = true;
        if (!step->run->IsView()) {
          Allocate(output);
        }
      }
    }
    step->run->Forward(context);
  }
  return OkStatus();
}

// Inputs that nobody else reads, and whose operators can, are computed in the joined value.
void GraphRun::JoinRows(const Step& step) {
  const int64_t line = step.context.Out().shape.back();
  for (Tensor* input : step.context.inputs) {
    const size_t index = IndexOf(*input);
    const Step* maker = maker_[index];
    if (maker != nullptr && readers_[index] == 1 && !maker->fixed && maker->run->LeavesGaps()) {
      input->line = static_cast<size_t>(line);
    }
  }
}

void GraphRun::Allocate(Tensor* tensor) {
  const size_t index = IndexOf(*tensor);
  if (tensor->type == ElementType::kFloat) {
    numbers_[index].resize(tensor->count());
    tensor->numbers = numbers_[index].data();
  } else if (tensor->type != ElementType::kBag) {
    integers_[index].resize(tensor->count());
    tensor->integers = integers_[index].data();
  }
}

void GraphRun::Forward(bool train, uint64_t key) {
  if (!std::exchange(allocated_, true)) {
    for (Step& step : steps_) {
      for (Tensor* output : step.context.outputs) {
        if (output != nullptr && Runs(step) && !output->known && output->line == 0 &&
            !step.run->IsView()) {
          Allocate(output);
        }
      }
      if (Runs(step) && step.run->JoinsRows()) {
        PlaceRows(step.context, &Tensor::numbers);
      }
    }
  }
  for (Step& step : steps_) {
    if (!step.done && Runs(step)) {
      step.context.train = train;
      step.context.key = HashInteger(key + step.number);
      step.run->Forward(step.context);
      step.done = step.fixed;
    }
  }
}

void GraphRun::PrepareBackward() {
  if (std::exchange(prepared_, true)) {
    return;
  }
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if (!Runs(*step)) {
      continue;
    }
    for (Tensor* output : step->context.outputs) {
      if (output == nullptr || !output->trained) {
        continue;
      }
      output->gradient_count = output->count();
      if (output->gradient == nullptr && output->base == nullptr) {
        std::vector<float>& memory = gradients_[IndexOf(*output)];
        memory.resize(output->count());
        output->gradient = memory.data();
      }
    }
    if (step->learns && step->run->JoinsRows()) {
      PlaceRows(step->context, &Tensor::gradient);
    }
  }
  for (Tensor& tensor : tensors_) {
    if (tensor.base != nullptr) {
      tensor.gradient = tensor.base->gradient;
    }
  }
}

void GraphRun::Backward() {
  for (Tensor& tensor : tensors_) {
    tensor.written = false;
  }
  tensors_[with_loss_ ? *loss_ : output_].gradient_owner().written = true;
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    const auto& outputs = step->context.outputs;
    const bool reached = std::any_of(outputs.begin(), outputs.end(), [](const Tensor* output) {
      return output != nullptr && output->trained && output->gradient_owner().written;
    });
    if (step->learns && reached) {
      step->run->Backward(step->context);
    }
  }
}

}  // namespace sluice::models::graph
