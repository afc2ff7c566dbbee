/* The parts of a field's elements and the tree of their boxes, split at the median along the
 * longest axis of their centres. */
#include "base/rounding.h"
#include "geometry/pressure_fields/field.h"

#include "base/vec3.h"

/* ---------------------------------------------------------------- parts */

typedef struct extent {
  double low[3], high[3];
} extent;

static const extent NOWHERE = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};

static void extent_hold(extent *e, const double x[3]) {
  for (int k = 0; k < 3; ++k) {
    e->low[k] = fmin(e->low[k], x[k]);
    e->high[k] = fmax(e->high[k], x[k]);
  }
}

static void extent_of(extent *e, const field_box *box) {
  vec3_sub(e->low, box->centre, box->half);
  vec3_add(e->high, box->centre, box->half);
}

static void box_around(field_box *box, const extent *e, double room) {
  for (int k = 0; k < 3; ++k) {
    box->centre[k] = 0.5 * (e->low[k] + e->high[k]);
    box->half[k] = 0.5 * (e->high[k] - e->low[k]) + room;
  }
}

int field_part_number(const qd_field *field, int element) {
  if (!field->cell) {
    return 1;
  }
  const field_cell *cell = field->cell + element;
  double edge[3][3], base[3];
  for (int i = 0; i < 3; ++i) {
    vec3_sub(edge[i], cell->corner[i + 1], cell->corner[0]);
  }
  vec3_cross(base, edge[0], edge[1]);
  const double volume = fabs(vec3_dot(base, edge[2])) / 6.0;
  const double length = (cell->most - cell->least) / cell->steepness;
  const double width = sqrt(6.0 * volume / length); /* of the triangle opposite the tip */
  const double parts = floor(length / width + 0.5);
  return parts >= FIELD_PARTS ? FIELD_PARTS : parts < 1.0 || !(parts > 0.0) ? 1 : (int)parts;
}

/* Extent of the part of a cell with pressures between `least` and `most`. */
static void slab_extent(const field_cell *cell, double least, double most, extent *e) {
  double p[4];
  for (int i = 0; i < 4; ++i) {
    p[i] = vec3_dot(cell->gradient, cell->corner[i]) + cell->offset;
    if (p[i] >= least && p[i] <= most) {
      extent_hold(e, cell->corner[i]);
    }
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int side = 0; side < 2; ++side) {
        const double level = side ? most : least;
        if (p[i] < level && p[j] > level) {
          double x[3];
          vec3_sub(x, cell->corner[j], cell->corner[i]);
          vec3_scale(x, x, (level - p[i]) / (p[j] - p[i]));
          vec3_add(x, x, cell->corner[i]);
          extent_hold(e, x);
        }
      }
    }
  }
}

static void cell_parts(qd_field *field, int element, int count, double room) {
  const field_cell *cell = field->cell + element;
  const double step = (cell->most - cell->least) / count;
  for (int i = 0; i < count; ++i) {
    field_part *part = &field->part[field->part_count + i];
    extent e = NOWHERE;
    const double least = cell->least + i * step, most = cell->least + (i + 1) * step;
    part->from = i > 0 ? least : -INFINITY;
    part->until = i + 1 < count ? most : INFINITY;
    /* the margins avoid gaps between parts, and corners lost to rounding */
    part->box.least = least - 1e-8 * step;
    part->box.most = most + 1e-8 * step;
    if (count > 1) {
      slab_extent(cell, part->box.least, part->box.most, &e);
    } else {
      for (int k = 0; k < 4; ++k) {
        extent_hold(&e, cell->corner[k]);
      }
    }
    box_around(&part->box, &e, room);
  }
}

static void triangle_part(qd_field *field, int element, double room) {
  field_part *part = &field->part[field->part_count];
  extent e = NOWHERE;
  for (int i = 0; i < 3; ++i) {
    extent_hold(&e, field->triangle[element].corner[i]);
  }
  *part = (field_part){.box.least = -INFINITY, .box.most = INFINITY};
  part->from = -INFINITY;
  part->until = INFINITY;
  box_around(&part->box, &e, room);
}

/* Corner i when the corners of all elements are numbered in sequence. */
static const double *corner_at(const qd_field *field, int i) {
  return field->cell ? field->cell[i / 4].corner[i % 4] : field->triangle[i / 3].corner[i % 3];
}

static double largest_coordinate(const qd_field *field) {
  double largest = 0.0;
  for (int i = 0; i < field->element_count * field_corners(field->kind); ++i) {
    const double *x = corner_at(field, i);
    largest = fmax(largest, fmax(fabs(x[0]), fmax(fabs(x[1]), fabs(x[2]))));
  }
  return largest;
}

/* Radius of the ball about `centre` that contains all corners. */
static double ball_radius(const qd_field *field, const double centre[3]) {
  double radius = 0.0;
  for (int i = 0; i < field->element_count * field_corners(field->kind); ++i) {
    double way[3];
    vec3_sub(way, corner_at(field, i), centre);
    radius = fmax(radius, vec3_norm(way));
  }
  return radius + NEGLIGIBLE * field->reach;
}

static void parts_fill(qd_field *field) {
  field->reach = largest_coordinate(field);
  const double room = NEGLIGIBLE * field->reach;
  field->part_count = 0;
  for (int e = 0; e < field->element_count; ++e) {
    const int count = field_part_number(field, e);
    if (field->cell) {
      cell_parts(field, e, count, room);
    } else {
      triangle_part(field, e, room);
    }
    for (int i = 0; i < count; ++i) {
      field->part[field->part_count + i].element = e;
    }
    field->part_count += count;
  }
}

/* ---------------------------------------------------------------- tree */

static double middle(const qd_field *field, int part, int axis) {
  return field->part[part].box.centre[axis];
}

static void box_around_parts(const qd_field *field, const int *order, int count, field_box *box) {
  extent all = NOWHERE;
  box->least = INFINITY;
  box->most = -INFINITY;
  for (int i = 0; i < count; ++i) {
    const field_box *one = &field->part[order[i]].box;
    extent e;
    extent_of(&e, one);
    extent_hold(&all, e.low);
    extent_hold(&all, e.high);
    box->least = fmin(box->least, one->least);
    box->most = fmax(box->most, one->most);
  }
  box_around(box, &all, 0.0);
}

/* Partitions the parts so that the one of rank k is in its place (Hoare's selection). */
static void select_rank(const qd_field *field, int *order, int count, int k, int axis) {
  int first = 0, last = count - 1;
  while (first < last) {
    const double pivot = middle(field, order[(first + last) / 2], axis);
    int i = first, j = last;
    while (i <= j) {
      while (middle(field, order[i], axis) < pivot) {
        ++i;
      }
      while (middle(field, order[j], axis) > pivot) {
        --j;
      }
      if (i <= j) {
        const int swapped = order[i];
        order[i++] = order[j];
        order[j--] = swapped;
      }
    }
    if (k <= j) {
      last = j;
    } else if (k >= i) {
      first = i;
    } else {
      return;
    }
  }
}

static int longest_axis(const field_box *box) {
  const int axis = box->half[1] > box->half[0] ? 1 : 0;
  return box->half[2] > box->half[axis] ? 2 : axis;
}

/* Splits some parts into halves at the median along their longest axis. */
static int split(const qd_field *field, int *order, int count) {
  field_box box;
  box_around_parts(field, order, count, &box);
  select_rank(field, order, count, count / 2, longest_axis(&box));
  return count / 2;
}

static void lane_set(field_node *node, int lane, const field_box *box) {
  for (int k = 0; k < 3; ++k) {
    node->centre[k][lane] = box->centre[k];
    node->half[k][lane] = box->half[k];
  }
  node->least[lane] = box->least;
  node->most[lane] = box->most;
}

static const field_box NO_BOX = {.half = {-INFINITY, -INFINITY, -INFINITY}};

void field_node_fill(field_node *node, const field_box *box) {
  for (int lane = 0; lane < LANE_COUNT; ++lane) {
    lane_set(node, lane, lane > 0 ? &NO_BOX : box);
    node->below[lane] = 0;
  }
}

/* Bounds of four groups of parts, in their order; the last groups may be empty. */
static void groups(const qd_field *field, int *order, int count, int end[LANE_COUNT + 1]) {
  const int half = count > 1 ? split(field, order, count) : 1;
  const int first = half > 1 ? split(field, order, half) : half;
  const int second = count - half > 1 ? split(field, order + half, count - half) : count - half;
  const int ends[LANE_COUNT + 1] = {0, first, half, half + second, count};
  memcpy(end, ends, sizeof ends);
}

/* Builds the node of some parts and its descendants; returns the index of the node. */
static int build(qd_field *field, int *order, int count) {
  const int index = field->node_count++;
  int end[LANE_COUNT + 1];
  groups(field, order, count, end);
  for (int lane = 0; lane < LANE_COUNT; ++lane) {
    int *group = order + end[lane];
    const int size = end[lane + 1] - end[lane];
    field_box box = NO_BOX;
    int below = 0;
    if (size > 0) {
      box_around_parts(field, group, size, &box);
      below = size > 1 ? build(field, group, size) : ~group[0];
    }
    lane_set(field->node + index, lane, &box);
    field->node[index].below[lane] = below;
  }
  return index;
}

void field_tree_build(qd_field *field, int *order) {
  parts_fill(field);
  field->node_count = 0;
  for (int i = 0; i < field->part_count; ++i) {
    order[i] = i;
  }
  box_around_parts(field, order, field->part_count, &field->whole);
  field->radius = ball_radius(field, field->whole.centre);
  build(field, order, field->part_count);
}
