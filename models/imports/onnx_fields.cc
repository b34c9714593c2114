#include <fmt/core.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstdint>

#include "models/imports/onnx_fields_internal.h"

namespace sluice::models {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// A graph of 20,000 nodes with names and attributes has about 500,000 fields.
constexpr int64_t kMaxFields = 1'000'000;

enum class Message {
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kValue,
  kType,
  kTensorType,
  kShape,
  kOther
};

// Fields that the parser turns into objects.
Message InsideOf(Message message, int field) {
  switch (message) {
    case Message::kModel:
      return field == 7 ? Message::kGraph : Message::kOther;
    case Message::kGraph:
      return field == 1                   ? Message::kNode
             : field == 11 || field == 12 ? Message::kValue
                                          : Message::kOther;
    case Message::kNode:
      return field == 5 ? Message::kAttribute : Message::kOther;
    case Message::kValue:
      return field == 2 ? Message::kType : Message::kOther;
    case Message::kType:
      return field == 1 ? Message::kTensorType : Message::kOther;
    case Message::kTensorType:
      return field == 2 ? Message::kShape : Message::kOther;
    default:
      return Message::kOther;
  }
}

class FieldCount {
 public:
  Status Walk(CodedInputStream* in, Message message) {
    while (const uint32_t tag = in->ReadTag()) {
      if (++fields_ > kMaxFields) {
        return InvalidArgument(fmt::format("the ONNX file has more than {} fields", kMaxFields))
            .Hint("a loop over rows or columns unrolls into nodes");
      }
      const Message inside = InsideOf(message, WireFormatLite::GetTagFieldNumber(tag));
      const bool nested =
          WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      if (inside == Message::kOther || !nested) {
        if (!WireFormatLite::SkipField(in, tag)) {
          return OkStatus();  // the parser reports that the file is truncated
        }
        continue;
      }
      uint32_t length = 0;
      if (!in->ReadVarint32(&length) ||
          length > static_cast<uint32_t>(std::max(in->BytesUntilLimit(), 0))) {
        return OkStatus();
      }
      const CodedInputStream::Limit limit = in->PushLimit(static_cast<int>(length));
      RETURN_IF_ERROR(Walk(in, inside));
      in->Skip(in->BytesUntilLimit());
      in->PopLimit(limit);
    }
    return OkStatus();
  }

 private:
  int64_t fields_ = 0;
};

}  // namespace

Status CheckOnnxFields(std::string_view file) {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(file.data()), static_cast<int>(file.size()));
  in.PushLimit(static_cast<int>(file.size()));
  return FieldCount().Walk(&in, Message::kModel);
}

}  // namespace sluice::models
