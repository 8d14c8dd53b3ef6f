
q


service.name
harborS$
*chat m
abc$
*chat m