#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "catalog/catalog.h"
#include "catalog/sql/sql_session.h"

// A model's versions: their numbers, and which of them is live. Each function is part of a
// transaction of `session` that writes.
namespace sluice::catalog {

class ModelRows;

// The number of the version to be stored, which no other one gets; makes the model if there is
// none of that name, and locks its row. AlreadyExists: it has versions although it `must_be_new`;
// 42501: the caller may not store one; Aborted: the model was dropped again and again meanwhile.
Result<int64_t> NextVersion(ModelRows& models, SqlSession& session, const std::string& schema,
                            const std::string& name, bool must_be_new);
// As the live one.
Status InsertVersion(ModelRows& models, SqlSession& session, const ModelVersion& model);
// That one and no other.
Status MakeLive(ModelRows& models, SqlSession& session, std::string_view schema,
                std::string_view name, int64_t version);
// If the live version was dropped, the newest becomes live; without any version the model is gone.
Status AfterDrop(ModelRows& models, SqlSession& session, std::string_view schema,
                 std::string_view name, bool was_live);

}  // namespace sluice::catalog
