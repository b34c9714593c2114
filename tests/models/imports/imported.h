#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "models/imports/import_network.h"
#include "models/model.h"
#include "models/model.pb.h"

namespace sluice::models {

// A file as the network of a spec.
struct Imported {
  Status status;
  ModelSpec spec;
  ImportReport report;
  std::unique_ptr<Network> network;
};

inline Imported ImportFile(const std::string& language, const std::string& file, ModelSpec spec,
                           const std::vector<std::string>& frozen = {}) {
  Imported imported;
  imported.spec = std::move(spec);
  imported.status = ImportNetwork({language, file, frozen}, &imported.spec, &imported.report);
  if (imported.status.ok()) {
    Result<std::unique_ptr<Network>> made = Network::Make(imported.spec);
    imported.status = made.status();
    if (made.ok()) {
      imported.network = std::move(made).value();
    }
  }
  return imported;
}

}  // namespace sluice::models
