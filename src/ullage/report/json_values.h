// SPDX-License-Identifier: Apache-2.0
#pragma once

// Helpers for all JSON of this layer: members keep their order, and unknown values are null.

#include "ullage/base/bytes.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <span>
#include <string>

namespace ullage::report {

using Json = nlohmann::ordered_json;

inline Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
inline Json or_null(const std::optional<Bytes>& bytes) { return bytes ? Json(bytes->count) : Json(nullptr); }

// One object for each way, as `ullage plan --allow` and `ullage run --allow` have them; "file" only where there is one.
struct ComparedWay;
Json ways_json(std::span<const ComparedWay> ways);

}  // namespace ullage::report
