#include <fmt/core.h>

#include <cstring>

#include "models/imports/onnx_tensor_internal.h"

namespace sluice::models {
namespace {

// All constants and initial values of a file: a statement cannot be larger.
constexpr int64_t kMaxElements = int64_t{1} << 27;

template <typename T>
Status FromBytes(const std::string& raw, int64_t count, const std::string& name, const auto& take) {
  if (raw.size() != static_cast<size_t>(count) * sizeof(T)) {
    return InvalidArgument(fmt::format("tensor '{}' has {} bytes, its shape takes {}", name,
                                       raw.size(), static_cast<size_t>(count) * sizeof(T)));
  }
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, raw.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    take(value);
  }
  return OkStatus();
}

template <typename T, typename List>
Status Take(const onnx::Tensor& tensor, int64_t count, const List& list, const auto& take) {
  if (!tensor.raw_data().empty()) {
    return FromBytes<T>(tensor.raw_data(), count, tensor.name(), take);
  }
  if (list.size() != count) {
    return InvalidArgument(fmt::format("tensor '{}' has {} values, its shape takes {}",
                                       tensor.name(), list.size(), count));
  }
  for (const auto value : list) {
    take(value);
  }
  return OkStatus();
}

}  // namespace

std::string OnnxTypeName(int type) {
  static constexpr const char* kNames[] = {"nothing",    "float32", "uint8",  "int8",   "uint16",
                                           "int16",      "int32",   "int64",  "text",   "bool",
                                           "float16",    "double",  "uint32", "uint64", "complex64",
                                           "complex128", "bfloat16"};
  return type >= 0 && type < static_cast<int>(std::size(kNames)) ? kNames[type]
                                                                 : fmt::format("type {}", type);
}

Result<int64_t> OnnxElements(const onnx::Tensor& tensor) {
  int64_t count = 1;
  for (const int64_t extent : tensor.dims()) {
    if (extent < 0 || (extent > 0 && count > kMaxElements / extent)) {
      return InvalidArgument(fmt::format("tensor '{}' has an axis of {}, or more than {} elements",
                                         tensor.name(), extent, kMaxElements));
    }
    count *= extent;
  }
  return count;
}

Status ReadOnnxTensor(const onnx::Tensor& tensor, GraphTensor* to) {
  if (tensor.data_location() != 0 || !tensor.external_data().empty()) {
    return Unimplemented(
               fmt::format("the values of tensor '{}' are in another file", tensor.name()))
        .Hint(
            "no file beside it is read; save the model as one file (onnx.save without external "
            "data)");
  }
  ASSIGN_OR_RETURN(const int64_t count, OnnxElements(tensor));
  *to->mutable_shape() = tensor.dims();
  const auto number = [to](auto value) { to->add_numbers(static_cast<float>(value)); };
  const auto integer = [to](auto value) { to->add_integers(static_cast<int64_t>(value)); };
  switch (tensor.data_type()) {
    case onnx::Tensor::FLOAT:
      return Take<float>(tensor, count, tensor.float_data(), number);
    case onnx::Tensor::DOUBLE:
      return Take<double>(tensor, count, tensor.double_data(), number);
    case onnx::Tensor::INT64:
      to->set_type(GraphTensor::INTEGER);
      return Take<int64_t>(tensor, count, tensor.int64_data(), integer);
    case onnx::Tensor::INT32:
      to->set_type(GraphTensor::INTEGER);
      return Take<int32_t>(tensor, count, tensor.int32_data(), integer);
    case onnx::Tensor::BOOL:
      to->set_type(GraphTensor::BOOLEAN);
      return Take<int8_t>(tensor, count, tensor.int32_data(),
                          [to](auto value) { to->add_integers(value != 0 ? 1 : 0); });
    default:
      return Unimplemented(fmt::format("tensor '{}' is of {}", tensor.name(),
                                       OnnxTypeName(tensor.data_type())))
          .Hint("float32, double, int32, int64 and bool are read");
  }
}

}  // namespace sluice::models
