/* The causes of a failed step, with the names of its model. */
#include "binding/model.h"

/* The name of a body or joint, or its index if the model has no names. */
static PyObject *name_of(PyObject *model, const char *names, int index) {
  PyObject *list = PyObject_GetAttrString(model, names);
  PyObject *name = list ? PySequence_GetItem(list, index) : NULL;
  Py_XDECREF(list);
  if (name) {
    return name;
  }
  PyErr_Clear();
  return PyLong_FromLong(index);
}

static int joint_of(const model_object *model, int dof) {
  int joint = 0;
  while (joint + 1 < model->joint_count && model->joint_v[joint + 1] <= dof) {
    joint++;
  }
  return joint;
}

static PyObject *describe(PyObject *model, const qd_culprit *one) {
  PyObject *a = name_of(model, "body_names", one->body_a);
  PyObject *b = a ? name_of(model, "body_names", one->body_b) : NULL;
  PyObject *joint = NULL, *text = NULL; /* joint or tendon */
  if (!b) {
    Py_XDECREF(a);
    return NULL;
  }
  switch (one->kind) {
  case QD_CULPRIT_PAIR:
    text = PyUnicode_FromFormat("contact of %R with %R", a, b);
    break;
  case QD_CULPRIT_LIMIT:
    joint = name_of(model, "joint_names", joint_of((model_object *)model, one->index));
    text = joint ? PyUnicode_FromFormat("limit of joint %R", joint) : NULL;
    break;
  case QD_CULPRIT_CONSTRAINT:
    text = PyUnicode_FromFormat("constraint %d between %R and %R", (int)one->index, a, b);
    break;
  case QD_CULPRIT_TENDON:
    joint = name_of(model, "tendon_names", one->index);
    text = joint ? PyUnicode_FromFormat("tendon %R", joint) : NULL;
    break;
  default:
    text = PyUnicode_FromFormat("motion of %R", a);
  }
  Py_XDECREF(joint);
  Py_DECREF(a);
  Py_DECREF(b);
  return text;
}

PyObject *culprits_describe(model_object *model, const qd_culprit *list, int count) {
  PyObject *out = PyTuple_New(count);
  for (int i = 0; out && i < count; i++) {
    PyObject *text = describe((PyObject *)model, list + i);
    if (text) {
      PyTuple_SET_ITEM(out, i, text);
    } else {
      Py_CLEAR(out);
    }
  }
  return out;
}
