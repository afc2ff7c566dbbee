#include <math.h>

#include "geometry/height_fields/height_field.h"
#include "mechanics/spec/parts.h"
#include "mechanics/spec/spec_check.h"

static int size_count(int type) {
  static const int counts[QD_SHAPE_TYPE_COUNT] = {0, 1, 2, 3, 2, 3, 0, 1, 0};
  return counts[type];
}

const char *geom_size_fault(int type, const double *size) {
  for (int k = 0; k < size_count(type); ++k) {
    const int may_be_zero = (type == QD_CAPSULE && k == 1) || type == QD_CLOUD;
    if (!(size[k] > 0.0) && !(may_be_zero && size[k] == 0.0)) {
      return "must be positive";
    }
  }
  return NULL;
}

static qd_status check_geoms(const qd_model_spec *s, const report *r) {
  TRY(spec_finite(r, "geom_pos", s->geom_pos, s->geom_count, 3));
  TRY(spec_finite(r, "geom_quat", s->geom_quat, s->geom_count, 4));
  TRY(spec_quats(r, "geom_quat", s->geom_quat, s->geom_count));
  TRY(spec_finite(r, "geom_size", s->geom_size, s->geom_count, 3));
  for (int i = 0; i < s->geom_count; ++i) {
    if (s->geom_type[i] < 0 || s->geom_type[i] >= QD_SHAPE_TYPE_COUNT) {
      return spec_fail(r, "geom_type", i, "unknown shape");
    }
    if (s->geom_body[i] < 0 || s->geom_body[i] >= s->body_count) {
      return spec_fail(r, "geom_body", i, "no such body");
    }
    const char *fault = geom_size_fault(s->geom_type[i], s->geom_size + 3 * i);
    if (fault != NULL) {
      return spec_fail(r, "geom_size", i, fault);
    }
  }
  return QD_OK;
}

static qd_status check_meshes(const qd_model_spec *s, const report *r) {
  int vertices = 0, faces = 0;
  for (int i = 0; i < s->mesh_count; ++i) {
    if (s->mesh_vertex_count[i] < 0 || s->mesh_vertex_count[i] > s->mesh_vertex_total - vertices) {
      return spec_fail(r, "mesh_vertex_count", i, "more than there are");
    }
    if (s->mesh_face_count[i] < 0 || s->mesh_face_count[i] > s->mesh_face_total - faces) {
      return spec_fail(r, "mesh_face_count", i, "more than there are");
    }
    vertices += s->mesh_vertex_count[i];
    faces += s->mesh_face_count[i];
  }
  if (vertices != s->mesh_vertex_total) {
    return spec_fail(r, "mesh_vertex", vertices, "belongs to no mesh");
  }
  if (faces != s->mesh_face_total) {
    return spec_fail(r, "mesh_face", faces, "belongs to no mesh");
  }
  for (int i = 0; i < s->geom_count; ++i) {
    if (spec_index(s->geom_mesh, i) < -1 || spec_index(s->geom_mesh, i) >= s->mesh_count) {
      return spec_fail(r, "geom_mesh", i, "no such mesh");
    }
    if (spec_index(s->geom_mesh, i) >= 0 && s->geom_type[i] != QD_MESH) {
      return spec_fail(r, "geom_mesh", i, "only meshes have one");
    }
  }
  return spec_finite(r, "mesh_vertex", s->mesh_vertex, s->mesh_vertex_total, 3);
}

static qd_status check_clouds(const qd_model_spec *s, const report *r) {
  int points = 0;
  for (int i = 0; i < s->cloud_count; ++i) {
    if (s->cloud_point_count[i] < 1 || s->cloud_point_count[i] > s->cloud_point_total - points) {
      return spec_fail(r, "cloud_point_count", i, "less than one, or more than there are");
    }
    if (s->cloud_contact_count[i] < 1 || s->cloud_contact_count[i] > CONTACTS_PER_PAIR_MAX) {
      return spec_fail(r, "cloud_contact_count", i, "must be 1 to 8");
    }
    points += s->cloud_point_count[i];
  }
  if (points != s->cloud_point_total) {
    return spec_fail(r, "cloud_point", points, "belongs to no cloud");
  }
  for (int i = 0; i < s->geom_count; ++i) {
    const int cloud = spec_index(s->geom_cloud, i);
    if (cloud < -1 || cloud >= s->cloud_count || (cloud >= 0) != (s->geom_type[i] == QD_CLOUD)) {
      return spec_fail(r, "geom_cloud", i, "clouds have one, other shapes have none");
    }
  }
  TRY(spec_finite(r, "cloud_point", s->cloud_point, s->cloud_point_total, 3));
  for (int i = 0; i < 3 * s->cloud_point_total; ++i) {
    if (fabs(s->cloud_point[i]) > QD_OCP_LARGEST) {
      return spec_fail(r, "cloud_point", i / 3, "too large");
    }
  }
  return QD_OK;
}

static qd_status check_hfield(const qd_model_spec *s, int i, int heights, const report *r) {
  const int32_t *grid = s->hfield_grid + 2 * i;
  const double *size = s->hfield_size + 3 * i;
  if (grid[0] < 2 || grid[1] < 2 || grid[0] > QD_HFIELD_POINTS_MAX / grid[1]) {
    return spec_fail(r, "hfield_grid", i, "less than two rows or columns, or too many points");
  }
  if (grid[0] * grid[1] > s->hfield_height_total - heights) {
    return spec_fail(r, "hfield_grid", i, "more points than there are heights");
  }
  if (!(size[0] > 0.0) || !(size[1] > 0.0)) {
    return spec_fail(r, "hfield_size", i, "half lengths must be positive");
  }
  for (int k = 0; k < grid[0] * grid[1]; ++k) {
    if (!(s->hfield_height[heights + k] > size[2])) {
      return spec_fail(r, "hfield_size", i, "its bottom must be below all heights");
    }
  }
  return QD_OK;
}

static qd_status check_hfields(const qd_model_spec *s, const report *r) {
  int heights = 0;
  TRY(spec_finite(r, "hfield_size", s->hfield_size, s->hfield_count, 3));
  TRY(spec_finite(r, "hfield_height", s->hfield_height, s->hfield_height_total, 1));
  for (int i = 0; i < s->hfield_height_total; ++i) {
    if (fabs(s->hfield_height[i]) > QD_OCP_LARGEST) {
      return spec_fail(r, "hfield_height", i, "too large");
    }
  }
  for (int i = 0; i < s->hfield_count; ++i) {
    TRY(check_hfield(s, i, heights, r));
    heights += s->hfield_grid[2 * i] * s->hfield_grid[2 * i + 1];
  }
  if (heights != s->hfield_height_total) {
    return spec_fail(r, "hfield_height", heights, "belongs to no height field");
  }
  for (int i = 0; i < s->geom_count; ++i) {
    const int field = spec_index(s->geom_hfield, i);
    if (field < -1 || field >= s->hfield_count || (field >= 0) != (s->geom_type[i] == QD_HFIELD)) {
      return spec_fail(r, "geom_hfield", i, "height fields have one, other shapes have none");
    }
  }
  return QD_OK;
}

qd_status spec_check_shapes(const qd_model_spec *s, const report *r) {
  TRY(check_geoms(s, r));
  TRY(check_meshes(s, r));
  TRY(check_clouds(s, r));
  return check_hfields(s, r);
}
