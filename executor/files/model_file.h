#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "catalog/model_store.h"

namespace sluice::executor {

// One version of a model as the content of a file: README.md has the format.
struct ModelFile {
  catalog::ModelVersion version;  // without owner, job and time, which belong to its database
  std::string weights;
};

std::string WriteModelFile(const catalog::ModelVersion& version, std::string_view weights);
// 22023: the bytes are no such file, of a later format, or damaged. What the plan and the weights
// mean is not looked at; texts are UTF-8 without NUL.
Result<ModelFile> ReadModelFile(std::string_view bytes);

}  // namespace sluice::executor
