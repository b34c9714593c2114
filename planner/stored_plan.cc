#include "planner/stored_plan.h"

#include <fmt/core.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>

#include <limits>

#include "base/value.h"
#include "planner/plan.pb.h"
#include "planner/stored_attributes_internal.h"

namespace sluice::planner {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::io::CodedInputStream;

// Limit of nested messages; our plans have six levels.
constexpr int kDeepestMessage = 16;
// Memory allowed for any plan; a larger plan is limited to a multiple of its own bytes. A
// vocabulary, the largest part of a large plan, takes five times its bytes.
constexpr int64_t kFreeBytes = int64_t{64} << 20;
constexpr int64_t kMaxExpansion = 8;
// More than any table's columns. Features are compared with each other one by one.
constexpr int kMaxFeatures = 1 << 16;

// Adds up what parsing would allocate, without allocating it.
class PlanWeight {
 public:
  // Whether the bytes are well formed and weigh at most `most`.
  static bool Fits(std::string_view bytes, int64_t most) {
    CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                        static_cast<int>(bytes.size()));
    PlanWeight weight(in, most);
    return weight.Message(*plan::TrainPlan::descriptor(), 0) && in.ConsumedEntireMessage();
  }

 private:
  enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

  // Memory of a message or a text in a repeated field; of a number in a packed one.
  static constexpr int64_t kMessage = 256;
  static constexpr int64_t kText = 48;
  static constexpr int64_t kNumber = 16;

  PlanWeight(CodedInputStream& in, int64_t most) : in_(in), left_(most) {}

  bool Take(int64_t weight) {
    left_ -= weight;
    return left_ >= 0;
  }
  bool Message(const Descriptor& type, int depth) {
    while (const uint32_t tag = in_.ReadTag()) {
      if (!Field(type.FindFieldByNumber(static_cast<int>(tag >> 3U)), tag & 7U, depth)) {
        return false;
      }
    }
    return true;
  }
  bool Field(const FieldDescriptor* field, uint32_t wire_type, int depth) {
    uint64_t number = 0;
    uint32_t small = 0;
    switch (wire_type) {
      case kVarint:
        return in_.ReadVarint64(&number) && Take(kNumber);
      case kFixed64:
        return in_.ReadLittleEndian64(&number) && Take(kNumber);
      case kFixed32:
        return in_.ReadLittleEndian32(&small) && Take(kNumber);
      case kLength:
        return Length(field, depth);
      default:
        return false;
    }
  }
  bool Length(const FieldDescriptor* field, int depth) {
    uint32_t size = 0;
    if (!in_.ReadVarint32(&size) || size > static_cast<uint32_t>(in_.BytesUntilTotalBytesLimit()) ||
        (in_.BytesUntilLimit() >= 0 && size > static_cast<uint32_t>(in_.BytesUntilLimit()))) {
      return false;
    }
    if (field != nullptr && field->type() == FieldDescriptor::TYPE_MESSAGE) {
      if (depth == kDeepestMessage || !Take(kMessage)) {
        return false;
      }
      const CodedInputStream::Limit limit = in_.PushLimit(static_cast<int>(size));
      const bool fits = Message(*field->message_type(), depth + 1) && in_.ConsumedEntireMessage();
      in_.PopLimit(limit);
      return fits;
    }
    const bool packed = field != nullptr && field->is_packable();
    return Take(packed ? int64_t{size} * 8 : kText + size) && in_.Skip(static_cast<int>(size));
  }

  CodedInputStream& in_;
  int64_t left_;
};

bool IsType(int32_t type) {
  return type >= static_cast<int32_t>(DataType::kBool) &&
         type <= static_cast<int32_t>(DataType::kBytes);
}

// Checks numbers that readers of a plan cast or use as indexes unchecked.
Status CheckNumbers(const models::ModelSpec& model) {
  const models::FeaturePlan& features = model.features();
  if (features.features_size() > kMaxFeatures || features.inputs_size() > kMaxFeatures) {
    return InvalidArgument(fmt::format("it has {} features of {} columns, the limit is {}",
                                       features.features_size(), features.inputs_size(),
                                       kMaxFeatures));
  }
  for (const models::InputColumn& input : features.inputs()) {
    if (!IsType(input.type())) {
      return InvalidArgument(
          fmt::format("column '{}' has no type that exists: {}", input.name(), input.type()));
    }
  }
  for (const models::Feature& feature : features.features()) {
    for (const uint32_t input : feature.inputs()) {
      if (input >= static_cast<uint32_t>(features.inputs_size())) {
        return InvalidArgument(fmt::format("feature '{}' reads column {} of {}", feature.name(),
                                           input, features.inputs_size()));
      }
    }
  }
  const models::LabelPlan& label = features.label();
  if (label.kind() != models::LabelPlan::NONE && label.column().empty()) {
    return InvalidArgument("its label has no column");
  }
  if (label.kind() != models::LabelPlan::NONE && !IsType(label.type())) {
    return InvalidArgument(
        fmt::format("label '{}' has no type that exists: {}", label.column(), label.type()));
  }
  RETURN_IF_ERROR(CheckStoredAttributes(model));
  for (const models::BlendMember& member : model.members()) {
    if (member.model().members_size() > 0) {
      return InvalidArgument("a member of a blend is a blend");
    }
    RETURN_IF_ERROR(CheckNumbers(member.model()));
  }
  return OkStatus();
}

}  // namespace

Result<plan::TrainPlan> ReadStoredPlan(std::string_view bytes) {
  const auto damaged = [](std::string_view why) {
    return Status(Code::kFailedPrecondition,
                  fmt::format("the stored plan of the model is damaged: {}", why))
        .SqlState("XX001")
        .Hint("train the model again, or roll back to an older version");
  };
  const auto size = static_cast<int64_t>(bytes.size());
  plan::TrainPlan plan;
  if (size > std::numeric_limits<int32_t>::max() ||
      !PlanWeight::Fits(bytes, kFreeBytes + size * kMaxExpansion) ||
      !plan.ParseFromArray(bytes.data(), static_cast<int>(size))) {
    return damaged("it cannot be read");
  }
  const Status numbers = CheckNumbers(plan.model());
  if (!numbers.ok()) {
    return damaged(numbers.message());
  }
  return plan;
}

}  // namespace sluice::planner
